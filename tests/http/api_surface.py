"""The surface of the HTTP API as text: `python -m tests.http.api_surface` writes it.

Responses derive from the resources of the services, so a renamed attribute would rename a field of the API.
The text shows that as a difference.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from duly import Duly

FILE = Path(__file__).with_name("api_surface.txt")


def surface() -> str:
    """Return one line per request and response: the names and types of all fields."""
    app = Duly()
    app.include_analyze()
    app.include_documents()
    document = app.http_app().openapi()
    schemas = document["components"]["schemas"]
    lines = []
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            name = f"{method.upper()} {path}"
            lines.append(f"{name} = {operation['operationId']}")
            for param in operation.get("parameters", ()):
                required = "!" if param.get("required") else ""
                lines.append(
                    f"{name} {param['in']} {param['name']}{required}:{_type(param['schema'], schemas)}"
                )
            lines += [
                f"{name} {text}" for text in _contents("request", operation.get("requestBody"), schemas)
            ]
            for status, response in operation["responses"].items():
                if int(status) < 400:
                    lines += [f"{name} {text}" for text in _contents(status, response, schemas)]
    return "\n".join(sorted(lines)) + "\n"


def _contents(label: str, part: dict[str, Any] | None, schemas: dict[str, Any]) -> Iterator[str]:
    for media_type, content in (part or {}).get("content", {}).items():
        yield f"{label} {media_type} {_type(content.get('schema', {}), schemas)}"


def _type(schema: dict[str, Any], schemas: dict[str, Any], inside: tuple[str, ...] = ()) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return "..." if name in inside else _type(schemas[name], schemas, (*inside, name))
    if "anyOf" in schema:
        return "|".join(_type(one, schemas, inside) for one in schema["anyOf"])
    if "properties" in schema:
        required = schema.get("required", ())
        fields = {
            name: f"{name}{'!' if name in required else ''}:{_type(field, schemas, inside)}"
            for name, field in schema["properties"].items()
        }
        return "{" + ", ".join(fields[name] for name in sorted(fields)) + "}"
    if schema.get("type") == "array":
        return f"[{_type(schema.get('items', {}), schemas, inside)}]"
    if isinstance(schema.get("additionalProperties"), dict):
        return f"map({_type(schema['additionalProperties'], schemas, inside)})"
    if "enum" in schema or "const" in schema:
        return "/".join(map(str, schema.get("enum") or [schema["const"]]))
    return str(schema.get("format") or schema.get("type", "any"))


if __name__ == "__main__":
    FILE.write_text(surface(), encoding="utf-8")
