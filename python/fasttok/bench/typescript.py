"""Tool declarations of Kimi-K2.5 and later, as the models' own Python wrapper makes them on every call.

A chat template cannot: one schema without a TypeScript form turns the whole list into JSON, and Jinja catches nothing.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

ROOT_INTERFACE = "parameters"
DEFINITION_PATH = "#/$defs/"
CONSTRAINTS = {
    "string": ("maxLength", "minLength", "pattern"),
    "number": ("maximum", "minimum"),
    "integer": ("maximum", "minimum"),
    "array": ("maxItems", "minItems"),
}
UNION_MEMBERS = {
    "string": "string",
    "number": "number",
    "integer": "number",
    "boolean": "boolean",
    "null": "null",
    "object": "{}",
    "array": "Array<any>",
}
PYTHON_TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "number": (int, float),
    "integer": int,
    "boolean": bool,
}


class InexpressibleError(Exception):
    """A schema has no TypeScript form."""


def namespace(tools: Sequence[Any]) -> str | None:
    """The declaration of `tools`, or None if they can only be declared as JSON."""
    try:
        sorted_tools: list[Any] = json.loads(json.dumps(tools, sort_keys=True))
        functions = [
            Printer().function(tool["function"])
            for tool in sorted_tools
            if tool.get("type") == "function" and tool.get("function")
        ]
    # Whatever goes wrong, the models' own code falls back to JSON.
    except (InexpressibleError, AttributeError, TypeError, ValueError, KeyError):
        return None
    if not functions:
        return None
    return "# Tools\n\n## functions\nnamespace functions {\n" + "\n".join(functions) + "\n}\n"


def indent(level: int) -> str:
    return "  " * level


def comment_lines(description: str, level: int) -> list[str]:
    return [f"{indent(level)}// {line}" if line else "" for line in description.split("\n")]


class Printer:
    """Prints one function; the definitions are those met so far."""

    def __init__(self) -> None:
        self.definitions: dict[str, Any] = {}
        self.refers_to_root = False

    def function(self, function: Mapping[str, Any]) -> str:
        schema: Mapping[str, Any] = function.get("parameters") or {}
        parameters = self.object_type(schema, 0)
        lines: list[str] = []
        refers_to_itself = self.refers_to_root
        if refers_to_itself:
            lines.append(self.root_interface(schema))
        lines.extend(self.interface(name, definition) for name, definition in list(self.definitions.items()))
        if function.get("description"):
            lines.extend(comment_lines(function["description"], 0))
        shown = ROOT_INTERFACE if refers_to_itself else parameters
        lines.append(f"type {function.get('name', 'function')} = (_: {shown}) => any;")
        return "\n".join(lines)

    def interface(self, name: str, schema: Mapping[str, Any]) -> str:
        body = f"interface {name} {self.type_text(schema, 0)}"
        return "\n".join([*(comment_lines(schema["description"], 0) if schema.get("description") else ()), body])

    def root_interface(self, schema: Mapping[str, Any]) -> str:
        """Unlike `object_type`, in the order of the properties, and without `additionalProperties`."""
        properties = [self.property_text(schema, name, 1) for name in schema.get("properties", {})]
        body = "\n" + ",\n".join(properties) + "\n" if properties else ""
        return f"interface {ROOT_INTERFACE} {{{body}}}"

    def object_type(self, schema: Mapping[str, Any], level: int) -> str:
        self.definitions.update(schema.get("$defs") or {})
        required = set(schema.get("required", ()))
        names = sorted(schema.get("properties", {}), key=lambda name: (name not in required, name))
        lines = [self.property_text(schema, name, level + 1) for name in names]
        additional = schema.get("additionalProperties")
        if additional is not None:
            lines.append(f"{indent(level + 1)}[k: string]: {self.additional_type(additional, level + 1)}")
        return "{\n" + ",\n".join(lines) + f"\n{indent(level)}}}" if lines else "{}"

    def additional_type(self, additional: Any, level: int) -> str:
        if isinstance(additional, bool):
            return "any" if additional else "never"
        if isinstance(additional, dict):
            return str(self.type_text(additional, level))
        raise InexpressibleError

    def property_text(self, schema: Mapping[str, Any], name: str, level: int) -> str:
        value = schema["properties"][name]
        lines = self.comment(value, level)
        default: Any = None if isinstance(value, bool) else value.get("default")
        if default is not None:
            is_number = isinstance(default, (bool, int, float))
            shown = str(default) if is_number else json.dumps(default, ensure_ascii=False)
            lines.append(f"{indent(level)}// Default: {shown}")
        mark = "" if name in schema.get("required", ()) else "?"
        lines.append(f"{indent(level)}{name}{mark}: {self.type_text(value, level)}")
        return "\n".join(lines)

    def comment(self, schema: Any, level: int) -> list[str]:
        """The lines before a property or an item: its description, then its constraints on one line."""
        if isinstance(schema, bool) or not schema:
            return []
        lines = comment_lines(schema["description"], level) if schema.get("description") else []
        declared = schema.get("type")
        if isinstance(declared, str) and not {"$ref", "anyOf", "enum"} & schema.keys():
            constraints = [f"{key}: {schema[key]}" for key in CONSTRAINTS.get(declared, ()) if key in schema]
            if constraints:
                lines.append(f"{indent(level)}// {', '.join(constraints)}")
        return lines

    def type_text(self, schema: Any, level: int) -> Any:
        """A text, but for the name of an unknown type, which may be anything; what joins it wants a text."""
        if isinstance(schema, bool):
            return "any" if schema else "null"
        if "$ref" in schema:
            return self.reference(schema["$ref"])
        if "anyOf" in schema:
            return " | ".join([self.type_text(choice, level) for choice in schema["anyOf"]])
        if "enum" in schema:
            return enum_text(schema)
        if "type" not in schema:
            if schema:
                raise InexpressibleError
            return "any"
        declared = schema["type"]
        if isinstance(declared, list):
            return " | ".join([UNION_MEMBERS[name] for name in schema["type"]])
        if declared == "object":
            return self.object_type(schema, level)
        if declared == "array":
            return self.array_type(schema.get("items") or {}, level)
        return "number" if declared == "integer" else declared

    def array_type(self, item: Any, level: int) -> str:
        comment = self.comment(item, level + 1)
        if not comment:
            return f"Array<{self.type_text(item, level)}>"
        # Joined, not formatted, so that a type name that is no text is an error here.
        body = indent(level + 1) + self.type_text(item, level + 1)
        return "\n".join(["Array<", *comment, body, f"{indent(level)}>"])

    def reference(self, reference: str) -> str:
        if reference == "#":
            self.refers_to_root = True
            return ROOT_INTERFACE
        if not reference.startswith(DEFINITION_PATH):
            raise InexpressibleError
        name = reference.removeprefix(DEFINITION_PATH).rsplit("/", 1)[-1]
        if not isinstance(self.definitions.get(name), dict):
            raise InexpressibleError
        return name


def enum_text(schema: Mapping[str, Any]) -> str:
    values = list(schema["enum"])
    if "type" in schema:
        declared = schema["type"]
        if isinstance(declared, list):
            names = [name for name in schema["type"] if name != "null"] or ["null"]
            if len(names) != 1 or len(schema["type"]) > 2:
                raise InexpressibleError
            declared = names[0]
        expected = PYTHON_TYPES.get(declared)
        if expected and not all(value is None or isinstance(value, expected) for value in values):
            raise InexpressibleError
    return " | ".join([f'"{value}"' if isinstance(value, str) else str(value) for value in values])
