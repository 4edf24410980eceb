//! Tools as the text of a `tool_declare` message.
//!
//! K2.5 and later show the model TypeScript-like declarations. The models' own encoder accepts a part of JSON Schema
//! and raises on the rest, and one schema it cannot express turns the *whole* list into compact JSON. Both forms start
//! from the tools with all keys sorted. Facts: the model repositories' `tool_declaration_ts.py`.

use std::borrow::Cow;

use crate::chat::json::{Object, Spacing, Value};
use crate::error::{Error, ErrorKind, Result};

/// The declaration of `tools`: TypeScript where every schema can be expressed in it, compact JSON otherwise.
///
/// # Errors
/// Where a list or an object stands for a scalar that the reference would print in Python's own notation.
pub fn declaration(tools: &[Value<'_>]) -> Result<String> {
    let sorted: Vec<Value<'_>> = tools.iter().map(Value::sorted_by_key).collect();
    match typescript(&sorted) {
        Ok(Some(text)) => Ok(text),
        Ok(None) | Err(Refusal::Inexpressible) => {
            let mut text = String::new();
            Value::Array(sorted).write_json(Spacing::Compact, &mut text);
            Ok(text)
        }
        Err(Refusal::Unprintable(kind)) => {
            let message =
                format!("expected a scalar where the tool declaration prints one, found {kind}");
            Err(Error::new(ErrorKind::Conversation, message))
        }
    }
}

/// Why a schema has no TypeScript form.
#[derive(Debug)]
enum Refusal {
    /// The reference raises here, and falls back to JSON.
    Inexpressible,
    /// The reference prints Python's notation of this kind of value.
    Unprintable(&'static str),
}

type Outcome<T> = std::result::Result<T, Refusal>;

const INDENT: &str = "  ";

/// None if no tool is a function, which the reference treats like a failure.
fn typescript(tools: &[Value<'_>]) -> Outcome<Option<String>> {
    let mut functions = Vec::new();
    for tool in tools {
        let tool = tool.as_object().ok_or(Refusal::Inexpressible)?;
        if tool.get("type").and_then(Value::as_str) != Some("function") {
            continue;
        }
        if let Some(function) = tool.get("function").filter(|function| function.is_truthy()) {
            functions.push(function_text(
                function.as_object().ok_or(Refusal::Inexpressible)?,
            )?);
        }
    }
    if functions.is_empty() {
        return Ok(None);
    }
    let functions = functions.join("\n");
    Ok(Some(format!(
        "# Tools\n\n## functions\nnamespace functions {{\n{functions}\n}}\n"
    )))
}

fn function_text(function: &Object<'_>) -> Outcome<String> {
    let empty = Object::default();
    let schema = match function
        .raw("parameters")
        .filter(|schema| schema.is_truthy())
    {
        Some(schema) => schema.as_object().ok_or(Refusal::Inexpressible)?,
        None => &empty,
    };
    let mut definitions = Definitions::default();
    let parameters = ObjectType::parse(schema, &mut definitions)?;

    let mut parts: Vec<String> = Vec::new();
    // Self references inside definitions are met too late to add the interface: the order is the reference's.
    let refers_to_itself = definitions.refers_to_root;
    if refers_to_itself {
        parts.push(parameters.root_interface()?);
    }
    for (name, schema) in definitions.schemas.clone() {
        parts.push(interface_text(name, schema, &mut definitions)?);
    }
    if let Some(description) = function.raw("description").filter(|text| text.is_truthy()) {
        let mut comment = comment_lines(description, "")?;
        comment.pop();
        parts.push(comment);
    }
    let mut declared = String::from("type ");
    match function.raw("name") {
        Some(name) => declared.push_str(&python_str(name)?),
        None => declared.push_str("function"),
    }
    declared.push_str(" = (_: ");
    if refers_to_itself {
        declared.push_str(ROOT_INTERFACE);
    } else {
        declared.push_str(&parameters.text("")?);
    }
    declared.push_str(") => any;");
    parts.push(declared);
    parts.retain(|part| !part.is_empty());
    Ok(parts.join("\n"))
}

/// The name under which a schema that refers to its own root is declared.
const ROOT_INTERFACE: &str = "parameters";

fn interface_text<'s>(
    name: &str,
    schema: &'s Value<'s>,
    definitions: &mut Definitions<'s>,
) -> Outcome<String> {
    let parsed = Type::parse(schema, definitions)?;
    let body = parsed.text("")?.into_string()?;
    let schema = schema.as_object().ok_or(Refusal::Inexpressible)?;
    let comment = match schema.raw("description").filter(|text| text.is_truthy()) {
        Some(description) => comment_lines(description, "")?,
        None => String::new(),
    };
    Ok(format!("{comment}interface {name} {body}"))
}

/// The `$defs` seen so far. A later definition of the same name takes the earlier one's place, as in a Python dict.
#[derive(Default)]
struct Definitions<'s> {
    schemas: Vec<(&'s str, &'s Value<'s>)>,
    refers_to_root: bool,
}

impl<'s> Definitions<'s> {
    fn register(&mut self, definitions: &'s Value<'s>) -> Outcome<()> {
        if !definitions.is_truthy() {
            return Ok(());
        }
        for (name, schema) in definitions
            .as_object()
            .ok_or(Refusal::Inexpressible)?
            .iter()
        {
            match self.schemas.iter_mut().find(|(known, _)| *known == name) {
                Some(entry) => entry.1 = schema,
                None => self.schemas.push((name, schema)),
            }
        }
        Ok(())
    }

    /// The name to print for a `$ref`.
    fn resolve(&mut self, reference: &'s Value<'s>) -> Outcome<&'s str> {
        let reference = reference.as_str().ok_or(Refusal::Inexpressible)?;
        if reference == "#" {
            self.refers_to_root = true;
            return Ok(ROOT_INTERFACE);
        }
        let path = reference
            .strip_prefix("#/$defs/")
            .ok_or(Refusal::Inexpressible)?;
        let name = path.rsplit('/').next().unwrap_or(path);
        let known = self.schemas.iter().find(|(known, _)| *known == name);
        match known.and_then(|(_, schema)| schema.as_object()) {
            Some(_) => Ok(name),
            None => Err(Refusal::Inexpressible),
        }
    }
}

/// A schema with the comment that stands before it where it is a property or an item.
struct Type<'s> {
    description: Option<&'s Value<'s>>,
    /// Constraints to print, sorted by key.
    constraints: Vec<(&'static str, &'s Value<'s>)>,
    shape: Shape<'s>,
}

enum Shape<'s> {
    /// The name of a type, printed unchecked; only a string can stand in a union.
    Scalar(Cow<'s, Value<'s>>),
    Object(ObjectType<'s>),
    Array(Box<Type<'s>>),
    Enum(Vec<Cow<'s, Value<'s>>>),
    AnyOf(Vec<Type<'s>>),
    Union(Vec<&'static str>),
    Reference(&'s str),
}

/// The text of a type, which the reference keeps as the value of `type` until it is joined or formatted.
enum TypeText<'t> {
    Text(String),
    Name(&'t Value<'t>),
}

impl TypeText<'_> {
    /// For a place where the reference formats, which prints anything.
    fn into_string(self) -> Outcome<String> {
        match self {
            Self::Text(text) => Ok(text),
            Self::Name(name) => python_str(name),
        }
    }

    /// For a place where the reference joins, which takes strings only.
    fn into_joined(self) -> Outcome<String> {
        match self {
            Self::Text(text) => Ok(text),
            Self::Name(name) => name
                .as_str()
                .map(str::to_owned)
                .ok_or(Refusal::Inexpressible),
        }
    }
}

impl<'s> Type<'s> {
    fn parse(schema: &'s Value<'s>, definitions: &mut Definitions<'s>) -> Outcome<Self> {
        let object = match schema {
            Value::Bool(true) => return Ok(Self::named("any")),
            Value::Bool(false) => return Ok(Self::named("null")),
            Value::Object(object) => object,
            _ => return Err(Refusal::Inexpressible),
        };
        let mut constraint_keys: &[&'static str] = &[];
        let shape = if let Some(reference) = object.raw("$ref") {
            Shape::Reference(definitions.resolve(reference)?)
        } else if let Some(choices) = object.raw("anyOf") {
            let choices = match choices {
                Value::Array(choices) => choices
                    .iter()
                    .map(|choice| Self::parse(choice, definitions))
                    .collect(),
                empty @ (Value::String(_) | Value::Object(_)) if !empty.is_truthy() => {
                    Ok(Vec::new())
                }
                _ => Err(Refusal::Inexpressible),
            };
            Shape::AnyOf(choices?)
        } else if let Some(values) = object.raw("enum") {
            let values = python_iter(values)?;
            if let Some(declared) = object.raw("type") {
                check_enum(&values, declared)?;
            }
            Shape::Enum(values)
        } else if let Some(declared) = object.raw("type") {
            match declared {
                Value::Array(names) => {
                    Shape::Union(names.iter().map(union_member).collect::<Outcome<_>>()?)
                }
                Value::String(name) if name == "object" => {
                    Shape::Object(ObjectType::parse(object, definitions)?)
                }
                Value::String(name) if name == "array" => {
                    constraint_keys = &["maxItems", "minItems"];
                    let item = match object.raw("items").filter(|items| items.is_truthy()) {
                        Some(items) => Self::parse(items, definitions)?,
                        None => Self::named("any"),
                    };
                    Shape::Array(Box::new(item))
                }
                name => {
                    constraint_keys = match name.as_str() {
                        Some("string") => &["maxLength", "minLength", "pattern"],
                        Some("number" | "integer") => &["maximum", "minimum"],
                        _ => &[],
                    };
                    Shape::Scalar(Cow::Borrowed(name))
                }
            }
        } else if object.is_empty() {
            return Ok(Self::named("any"));
        } else {
            return Err(Refusal::Inexpressible);
        };
        let constraints = constraint_keys
            .iter()
            .filter_map(|key| Some((*key, object.raw(key)?)))
            .collect();
        Ok(Self {
            description: object.raw("description"),
            constraints,
            shape,
        })
    }

    fn named(name: &'static str) -> Self {
        let shape = Shape::Scalar(Cow::Owned(Value::String(Cow::Borrowed(name))));
        Self {
            description: None,
            constraints: Vec::new(),
            shape,
        }
    }

    /// The comment lines before a property or an item: the description, then the constraints on one line.
    fn comment(&self, indent: &str) -> Outcome<String> {
        let mut text = match self
            .description
            .filter(|description| description.is_truthy())
        {
            Some(description) => comment_lines(description, indent)?,
            None => String::new(),
        };
        if !self.constraints.is_empty() {
            let print =
                |(key, value): &(&str, &Value<'_>)| Ok(format!("{key}: {}", python_str(value)?));
            let constraints: Vec<String> =
                self.constraints.iter().map(print).collect::<Outcome<_>>()?;
            text.push_str(indent);
            text.push_str("// ");
            text.push_str(&constraints.join(", "));
            text.push('\n');
        }
        Ok(text)
    }

    fn text(&self, indent: &str) -> Outcome<TypeText<'_>> {
        let text = match &self.shape {
            Shape::Scalar(name) if name.as_str() == Some("integer") => "number".to_owned(),
            Shape::Scalar(name) => return Ok(TypeText::Name(name)),
            Shape::Object(object) => object.text(indent)?,
            Shape::Array(item) => {
                let inner = format!("{indent}{INDENT}");
                let comment = item.comment(&inner)?;
                if comment.is_empty() {
                    format!("Array<{}>", item.text(indent)?.into_string()?)
                } else {
                    let item = item.text(&inner)?.into_string()?;
                    format!("Array<\n{comment}{inner}{item}\n{indent}>")
                }
            }
            Shape::Enum(values) => {
                let print = |value: &Cow<'_, Value<'_>>| match value.as_str() {
                    Some(text) => Ok(format!("\"{text}\"")),
                    None => python_str(value),
                };
                values
                    .iter()
                    .map(print)
                    .collect::<Outcome<Vec<_>>>()?
                    .join(" | ")
            }
            Shape::AnyOf(choices) => {
                let print = |choice: &Type<'_>| choice.text(indent)?.into_joined();
                choices
                    .iter()
                    .map(print)
                    .collect::<Outcome<Vec<_>>>()?
                    .join(" | ")
            }
            Shape::Union(names) => names.join(" | "),
            Shape::Reference(name) => (*name).to_owned(),
        };
        Ok(TypeText::Text(text))
    }
}

/// The properties of an object schema.
struct ObjectType<'s> {
    properties: Vec<Property<'s>>,
    additional: Option<Additional<'s>>,
}

struct Property<'s> {
    name: &'s str,
    required: bool,
    default: Option<&'s Value<'s>>,
    value: Type<'s>,
}

enum Additional<'s> {
    Any,
    Never,
    Typed(Box<Type<'s>>),
    /// The reference raises only when it prints.
    Invalid,
}

impl<'s> ObjectType<'s> {
    fn parse(schema: &'s Object<'s>, definitions: &mut Definitions<'s>) -> Outcome<Self> {
        if let Some(found) = schema.raw("$defs") {
            definitions.register(found)?;
        }
        let additional = match schema.get("additionalProperties") {
            None => None,
            Some(Value::Bool(true)) => Some(Additional::Any),
            Some(Value::Bool(false)) => Some(Additional::Never),
            Some(typed @ Value::Object(_)) => Some(Additional::Typed(Box::new(Type::parse(
                typed,
                definitions,
            )?))),
            Some(_) => Some(Additional::Invalid),
        };
        let mut properties = Vec::new();
        if let Some(found) = schema.raw("properties") {
            let found = found.as_object().ok_or(Refusal::Inexpressible)?;
            let required = match schema.raw("required") {
                Some(required) => python_iter(required)?,
                None => Vec::new(),
            };
            if required
                .iter()
                .any(|name| matches!(**name, Value::Array(_) | Value::Object(_)))
            {
                return Err(Refusal::Inexpressible);
            }
            for (name, value) in found.iter() {
                properties.push(Property {
                    name,
                    required: required
                        .iter()
                        .any(|required| required.as_str() == Some(name)),
                    default: value.as_object().and_then(|schema| schema.get("default")),
                    value: Type::parse(value, definitions)?,
                });
            }
        }
        Ok(Self {
            properties,
            additional,
        })
    }

    fn text(&self, indent: &str) -> Outcome<String> {
        let inner = format!("{indent}{INDENT}");
        let mut ordered: Vec<&Property<'_>> = self.properties.iter().collect();
        ordered.sort_by(|a, b| b.required.cmp(&a.required).then_with(|| a.name.cmp(b.name)));
        let mut lines: Vec<String> = ordered
            .into_iter()
            .map(|property| property.text(&inner))
            .collect::<Outcome<_>>()?;
        if let Some(additional) = &self.additional {
            let value = match additional {
                Additional::Any => "any".to_owned(),
                Additional::Never => "never".to_owned(),
                Additional::Typed(value) => value.text(&inner)?.into_string()?,
                Additional::Invalid => return Err(Refusal::Inexpressible),
            };
            lines.push(format!("{inner}[k: string]: {value}"));
        }
        if lines.is_empty() {
            return Ok("{}".to_owned());
        }
        Ok(format!("{{\n{}\n{indent}}}", lines.join(",\n")))
    }

    /// The root as an interface. Unlike [`Self::text`] the reference keeps the properties in their own order here, and
    /// leaves out `additionalProperties`.
    fn root_interface(&self) -> Outcome<String> {
        let lines: Vec<String> = self
            .properties
            .iter()
            .map(|property| property.text(INDENT))
            .collect::<Outcome<_>>()?;
        let body = if lines.is_empty() {
            String::new()
        } else {
            format!("\n{}\n", lines.join(",\n"))
        };
        Ok(format!("interface {ROOT_INTERFACE} {{{body}}}"))
    }
}

impl Property<'_> {
    fn text(&self, indent: &str) -> Outcome<String> {
        let mut text = self.value.comment(indent)?;
        if let Some(default) = self.default {
            text.push_str(indent);
            text.push_str("// Default: ");
            match default {
                Value::Bool(_) | Value::Int(_) | Value::BigInt(_) | Value::Float(_) => {
                    text.push_str(&python_str(default)?);
                }
                other => other.write_json(Spacing::Spaced, &mut text),
            }
            text.push('\n');
        }
        let mark = if self.required { "" } else { "?" };
        let value = self.value.text(indent)?.into_string()?;
        Ok(format!("{text}{indent}{}{mark}: {value}", self.name))
    }
}

/// `// ` before every line that is not empty; ends with a line feed.
fn comment_lines(description: &Value<'_>, indent: &str) -> Outcome<String> {
    let description = description.as_str().ok_or(Refusal::Inexpressible)?;
    let mut text = String::new();
    for line in description.split('\n') {
        if !line.is_empty() {
            text.push_str(indent);
            text.push_str("// ");
            text.push_str(line);
        }
        text.push('\n');
    }
    Ok(text)
}

/// A list-valued `type` knows these names only.
fn union_member(name: &Value<'_>) -> Outcome<&'static str> {
    match name.as_str() {
        Some("string") => Ok("string"),
        Some("number" | "integer") => Ok("number"),
        Some("boolean") => Ok("boolean"),
        Some("null") => Ok("null"),
        Some("object") => Ok("{}"),
        Some("array") => Ok("Array<any>"),
        _ => Err(Refusal::Inexpressible),
    }
}

/// Refuses an enum with a value that contradicts the declared type. As in Python, booleans are integers.
fn check_enum(values: &[Cow<'_, Value<'_>>], declared: &Value<'_>) -> Outcome<()> {
    let declared = match declared {
        Value::Array(names) => match names.as_slice() {
            [name] => name,
            [null, name] | [name, null] if null.as_str() == Some("null") => name,
            _ => return Err(Refusal::Inexpressible),
        },
        name => name,
    };
    let fits = |value: &Value<'_>| match declared.as_str() {
        Some("string") => matches!(value, Value::String(_)),
        Some("number") => matches!(
            value,
            Value::Int(_) | Value::BigInt(_) | Value::Float(_) | Value::Bool(_)
        ),
        Some("integer") => matches!(value, Value::Int(_) | Value::BigInt(_) | Value::Bool(_)),
        Some("boolean") => matches!(value, Value::Bool(_)),
        _ => true,
    };
    let all_fit = values
        .iter()
        .all(|value| matches!(**value, Value::Null) || fits(value));
    if all_fit {
        Ok(())
    } else {
        Err(Refusal::Inexpressible)
    }
}

/// What a Python `for` loop sees: the items of a list, the keys of an object, the characters of a string.
fn python_iter<'s>(value: &'s Value<'s>) -> Outcome<Vec<Cow<'s, Value<'s>>>> {
    let text = |text: Cow<'s, str>| Cow::Owned(Value::String(text));
    match value {
        Value::Array(items) => Ok(items.iter().map(Cow::Borrowed).collect()),
        Value::Object(object) => Ok(object
            .iter()
            .map(|(key, _)| text(Cow::Borrowed(key)))
            .collect()),
        Value::String(string) => Ok(string
            .chars()
            .map(|char| text(Cow::Owned(char.to_string())))
            .collect()),
        _ => Err(Refusal::Inexpressible),
    }
}

fn python_str(value: &Value<'_>) -> Outcome<String> {
    let mut text = String::new();
    if value.write_python_str(&mut text) {
        Ok(text)
    } else {
        Err(Refusal::Unprintable(value.kind()))
    }
}
