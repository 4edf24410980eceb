//! Schemas printed as the reference prints them: a namespace of function types, with comments for what TypeScript
//! cannot say.

use std::borrow::Cow;

use crate::chat::json::{Object, Spacing, Value};
use crate::chat::tool_declaration::schema::{
    Additional, Definitions, ObjectType, Property, ROOT_INTERFACE, Shape, Type,
};
use crate::chat::tool_declaration::{Outcome, Refusal};

const INDENT: &str = "  ";

/// None if no tool is a function, which the reference treats like a failure.
pub(super) fn namespace(tools: &[Value<'_>]) -> Outcome<Option<String>> {
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

impl Type<'_> {
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

impl ObjectType<'_> {
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

fn python_str(value: &Value<'_>) -> Outcome<String> {
    let mut text = String::new();
    if value.write_python_str(&mut text) {
        Ok(text)
    } else {
        Err(Refusal::Unprintable(value.kind()))
    }
}
