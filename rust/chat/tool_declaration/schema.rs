//! A tool's JSON Schema as the reference reads it: the part that has a TypeScript form, and a refusal for the rest.

use std::borrow::Cow;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::chat::json::{Object, Value};
use crate::chat::tool_declaration::{Inexpressible, Outcome};

/// The name under which a schema that refers to its own root is declared.
pub(super) const ROOT_INTERFACE: &str = "parameters";

/// The `$defs` seen so far. A later definition of the same name takes the earlier one's place, as in a Python dict.
#[derive(Default)]
pub(super) struct Definitions<'s> {
    pub schemas: Vec<(&'s str, &'s Value<'s>)>,
    /// The place of each name in `schemas`.
    places: FxHashMap<&'s str, usize>,
    pub refers_to_root: bool,
}

impl<'s> Definitions<'s> {
    fn register(&mut self, definitions: &'s Value<'s>) -> Outcome<()> {
        if !definitions.is_truthy() {
            return Ok(());
        }
        for (name, schema) in definitions.as_object().ok_or(Inexpressible)?.iter() {
            if let Some(&place) = self.places.get(name) {
                self.schemas[place].1 = schema;
            } else {
                self.places.insert(name, self.schemas.len());
                self.schemas.push((name, schema));
            }
        }
        Ok(())
    }

    /// The name to print for a `$ref`.
    fn resolve(&mut self, reference: &'s Value<'s>) -> Outcome<&'s str> {
        let reference = reference.as_str().ok_or(Inexpressible)?;
        if reference == "#" {
            self.refers_to_root = true;
            return Ok(ROOT_INTERFACE);
        }
        let path = reference.strip_prefix("#/$defs/").ok_or(Inexpressible)?;
        let name = path.rsplit('/').next().unwrap_or(path);
        let known = self.places.get(name).map(|&place| self.schemas[place].1);
        match known.and_then(Value::as_object) {
            Some(_) => Ok(name),
            None => Err(Inexpressible),
        }
    }
}

/// A schema with the comment that stands before it where it is a property or an item.
pub(super) struct Type<'s> {
    pub description: Option<&'s Value<'s>>,
    /// Constraints to print, sorted by key.
    pub constraints: Vec<(&'static str, &'s Value<'s>)>,
    pub shape: Shape<'s>,
}

pub(super) enum Shape<'s> {
    /// The name of a type, printed unchecked; only a string can stand in a union.
    Scalar(Cow<'s, Value<'s>>),
    Object(ObjectType<'s>),
    Array(Box<Type<'s>>),
    Enum(Vec<Cow<'s, Value<'s>>>),
    AnyOf(Vec<Type<'s>>),
    Union(Vec<&'static str>),
    Reference(&'s str),
}

impl<'s> Type<'s> {
    pub(super) fn parse(schema: &'s Value<'s>, definitions: &mut Definitions<'s>) -> Outcome<Self> {
        let object = match schema {
            Value::Bool(true) => return Ok(Self::named("any")),
            Value::Bool(false) => return Ok(Self::named("null")),
            Value::Object(object) => object,
            _ => return Err(Inexpressible),
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
                _ => Err(Inexpressible),
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
            return Err(Inexpressible);
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
}

/// The properties of an object schema.
pub(super) struct ObjectType<'s> {
    pub properties: Vec<Property<'s>>,
    pub additional: Option<Additional<'s>>,
}

pub(super) struct Property<'s> {
    pub name: &'s str,
    pub required: bool,
    pub default: Option<&'s Value<'s>>,
    pub value: Type<'s>,
}

pub(super) enum Additional<'s> {
    Any,
    Never,
    Typed(Box<Type<'s>>),
    /// The reference raises only when it prints.
    Invalid,
}

impl<'s> ObjectType<'s> {
    pub(super) fn parse(
        schema: &'s Object<'s>,
        definitions: &mut Definitions<'s>,
    ) -> Outcome<Self> {
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
            let found = found.as_object().ok_or(Inexpressible)?;
            let required = match schema.raw("required") {
                Some(required) => python_iter(required)?,
                None => Vec::new(),
            };
            if required
                .iter()
                .any(|name| matches!(**name, Value::Array(_) | Value::Object(_)))
            {
                return Err(Inexpressible);
            }
            let required: FxHashSet<&str> =
                required.iter().filter_map(|name| name.as_str()).collect();
            for (name, value) in found.iter() {
                properties.push(Property {
                    name,
                    required: required.contains(name),
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
        _ => Err(Inexpressible),
    }
}

/// Refuses an enum with a value that contradicts the declared type. As in Python, booleans are integers.
fn check_enum(values: &[Cow<'_, Value<'_>>], declared: &Value<'_>) -> Outcome<()> {
    let declared = match declared {
        Value::Array(names) => match names.as_slice() {
            [name] => name,
            [null, name] | [name, null] if null.as_str() == Some("null") => name,
            _ => return Err(Inexpressible),
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
    if all_fit { Ok(()) } else { Err(Inexpressible) }
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
        _ => Err(Inexpressible),
    }
}
