"""Tells network file systems from local ones."""

from pathlib import Path

_MOUNTS = Path("/proc/self/mounts")
_NETWORK = frozenset(
    {"afs", "beegfs", "ceph", "cifs", "fuse.glusterfs", "fuse.sshfs", "gpfs", "lustre", "nfs", "nfs4", "smb3", "smbfs"}
)


def network_filesystem(folder: Path, mounts: Path = _MOUNTS) -> str | None:
    """The kind of network file system that a folder lies on; None when it is local, or where Linux does not say."""
    if not mounts.exists():
        return None
    folder = folder.resolve()
    entries = [line.split() for line in mounts.read_text(encoding="utf-8", errors="replace").splitlines()]
    found = [(_unescaped(entry[1]), entry[2]) for entry in entries if folder.is_relative_to(_unescaped(entry[1]))]
    # of several mounts above the folder the deepest counts, of several on one place the last
    kind = max(enumerate(found), key=lambda item: (len(item[1][0]), item[0]), default=(0, ("", "")))[1][1]
    return kind if kind in _NETWORK else None


def _unescaped(mount_point: str) -> str:
    return mount_point.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\")
