"""The OpenAPI document says everything a client needs."""

from fastapi.testclient import TestClient

from training.config import RunConfig


def _operations(client: TestClient) -> list[tuple[str, dict]]:
    paths = client.get("/api/v1/openapi.json").json()["paths"]
    return [(f"{m.upper()} {path}", operation) for path, methods in paths.items() for m, operation in methods.items()]


def test_every_route_has_summary_description_tag_and_the_shape_of_refusals(empty: TestClient):
    for name, operation in _operations(empty):
        assert operation["summary"], name
        assert operation["description"].endswith("."), name
        assert operation["tags"], name
        schema = operation["responses"]["default"]["content"]["application/json"]["schema"]
        assert schema == {"$ref": "#/components/schemas/ErrorDocument"}, name
        assert "422" not in operation["responses"], name


def test_every_parameter_is_described(empty: TestClient):
    for name, operation in _operations(empty):
        for parameter in operation.get("parameters", []):
            assert parameter.get("description"), (name, parameter["name"])


def test_routes_that_take_a_run_show_its_schema_and_an_example(empty: TestClient):
    document = empty.get("/api/v1/openapi.json").json()
    for path in ("/api/v1/runs", "/api/v1/check"):
        content = document["paths"][path]["post"]["requestBody"]["content"]
        assert content["application/json"]["schema"] == {"$ref": "#/components/schemas/RunConfig"}
        assert all(body["example"] for body in content.values())
    schema = document["components"]["schemas"]["RunConfig"]
    assert set(schema["properties"]) == set(RunConfig.model_fields)
    assert "required" not in schema


def test_every_field_of_a_run_has_help(empty: TestClient):
    schemas = empty.get("/api/v1/openapi.json").json()["components"]["schemas"]
    for name in ("ModelConfig", "DataConfig", "GenerationConfig", "OptimizationConfig", "GRPOConfig", "RLOOConfig"):
        for field, schema in schemas[name]["properties"].items():
            assert schema.get("description") or field == "name", (name, field)


def test_references_resolve(empty: TestClient):
    document = empty.get("/api/v1/openapi.json").json()
    known = set(document["components"]["schemas"])

    def references(node: object) -> set[str]:
        if isinstance(node, dict):
            own = {node["$ref"].rpartition("/")[2]} if isinstance(node.get("$ref"), str) else set()
            return own.union(*(references(value) for value in node.values()))
        return set().union(*(references(value) for value in node)) if isinstance(node, list) else set()

    assert references(document) <= known
