# Two images from one source: `web` (pages and REST, no torch) and `worker` (runs training).
#   docker build --target web -t vlmscope-web .
#   docker build --target worker -t vlmscope-worker .
# Built with BuildKit, which sends only what COPY names: .venv and .data never enter the context.

FROM python:3.11-slim-bookworm AS base
ENV PATH=/opt/venv/bin:$PATH \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1 \
    PYTHONUNBUFFERED=1
RUN python -m venv /opt/venv \
    && useradd --uid 10001 --create-home --shell /usr/sbin/nologin vlmscope \
    && install -d -o vlmscope -g vlmscope /data
WORKDIR /opt/vlmscope
COPY pyproject.toml README.md LICENSE ./
COPY app ./app
COPY worker ./worker
COPY training ./training
COPY migrations ./migrations

# The packages stay in /opt/vlmscope, as in a checkout: --editable keeps one layout everywhere.
FROM base AS web
RUN pip install --editable .
USER vlmscope
ENV VLMSCOPE_DATA_DIR=/data
VOLUME /data
EXPOSE 7860
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:7860/api/v1/ready', timeout=4)"]
CMD ["vlmscope", "web"]

FROM base AS worker
# PyPI's torch for Linux carries CUDA.  For a CPU host: --build-arg TORCH="torch==2.13.0 --index-url <CPU wheels>"
ARG TORCH="torch==2.13.0"
RUN pip install ${TORCH}
RUN pip install --editable '.[train]'
USER vlmscope
ENV OMP_WAIT_POLICY=PASSIVE \
    VLMSCOPE_DATA_DIR=/data
VOLUME /data
HEALTHCHECK --interval=30s --timeout=20s --start-period=60s \
    CMD ["python", "-m", "worker.health"]
CMD ["vlmscope", "worker"]
