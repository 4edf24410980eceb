//! Schemas printed as the reference prints them: a namespace of function types, with comments for what TypeScript
//! cannot say.

use std::borrow::Cow;
use std::cell::Cell;

use crate::chat::json::{Object, Spacing, Value};
use crate::chat::tool_declaration::schema::{
    Additional, Definitions, ObjectType, Property, ROOT_INTERFACE, Shape, Type,
};
use crate::chat::tool_declaration::{Inexpressible, Outcome};

/// What [`namespace`] prints.
pub(super) struct Namespace {
    pub text: String,
    /// The first tool with a value for which the reference prints Python's own notation, and the kind of that value.
    pub unprintable: Option<(usize, &'static str)>,
}

/// None if no tool is a function, which the reference treats like a failure.
pub(super) fn namespace(tools: &[Value<'_>]) -> Outcome<Option<Namespace>> {
    let unprintable = Cell::new(None);
    let printer = Printer {
        level: 0,
        unprintable: &unprintable,
    };
    let mut first_unprintable = None;
    let mut functions = Vec::new();
    for (index, tool) in tools.iter().enumerate() {
        let tool = tool.as_object().ok_or(Inexpressible)?;
        if tool.get("type").and_then(Value::as_str) != Some("function") {
            continue;
        }
        if let Some(function) = tool.get("function").filter(|function| function.is_truthy()) {
            let function = function.as_object().ok_or(Inexpressible)?;
            functions.push(function_text(function, printer)?);
            let unprintable = unprintable.take().map(|kind| (index, kind));
            first_unprintable = first_unprintable.or(unprintable);
        }
    }
    if functions.is_empty() {
        return Ok(None);
    }
    let functions = functions.join("\n");
    let text = format!("# Tools\n\n## functions\nnamespace functions {{\n{functions}\n}}\n");
    Ok(Some(Namespace {
        text,
        unprintable: first_unprintable,
    }))
}

/// Prints at one level of indentation.
#[derive(Clone, Copy)]
struct Printer<'p> {
    level: usize,
    /// Noted and not raised: whatever the reference refuses later turns the whole list into JSON all the same.
    unprintable: &'p Cell<Option<&'static str>>,
}

impl Printer<'_> {
    fn indent(self) -> String {
        "  ".repeat(self.level)
    }

    fn deeper(self) -> Self {
        Self {
            level: self.level + 1,
            ..self
        }
    }

    /// `// ` before every line that is not empty; ends with a line feed.
    fn comment_lines(self, description: &Value<'_>) -> Outcome<String> {
        let description = description.as_str().ok_or(Inexpressible)?;
        let mut text = String::new();
        for line in description.split('\n') {
            if !line.is_empty() {
                text.push_str(&self.indent());
                text.push_str("// ");
                text.push_str(line);
            }
            text.push('\n');
        }
        Ok(text)
    }

    /// A value as Python's `str` shows it.
    fn python_str(self, value: &Value<'_>) -> String {
        let mut text = String::new();
        if !value.write_python_str(&mut text) {
            self.unprintable.set(Some(value.kind()));
        }
        text
    }
}

fn function_text(function: &Object<'_>, printer: Printer<'_>) -> Outcome<String> {
    let empty = Object::default();
    let schema = match function
        .raw("parameters")
        .filter(|schema| schema.is_truthy())
    {
        Some(schema) => schema.as_object().ok_or(Inexpressible)?,
        None => &empty,
    };
    let mut definitions = Definitions::default();
    let parameters = ObjectType::parse(schema, &mut definitions)?;

    let mut parts: Vec<String> = Vec::new();
    // Self references inside definitions are met too late to add the interface: the order is the reference's.
    let refers_to_itself = definitions.refers_to_root;
    if refers_to_itself {
        parts.push(parameters.root_interface(printer)?);
    }
    for (name, schema) in definitions.schemas.clone() {
        parts.push(interface_text(name, schema, &mut definitions, printer)?);
    }
    if let Some(description) = function.raw("description").filter(|text| text.is_truthy()) {
        let mut comment = printer.comment_lines(description)?;
        comment.pop();
        parts.push(comment);
    }
    let mut declared = String::from("type ");
    match function.raw("name") {
        Some(name) => declared.push_str(&printer.python_str(name)),
        None => declared.push_str("function"),
    }
    declared.push_str(" = (_: ");
    if refers_to_itself {
        declared.push_str(ROOT_INTERFACE);
    } else {
        declared.push_str(&parameters.text(printer)?);
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
    printer: Printer<'_>,
) -> Outcome<String> {
    let parsed = Type::parse(schema, definitions)?;
    let body = parsed.text(printer)?.into_string(printer);
    let schema = schema.as_object().ok_or(Inexpressible)?;
    let comment = match schema.raw("description").filter(|text| text.is_truthy()) {
        Some(description) => printer.comment_lines(description)?,
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
    fn into_string(self, printer: Printer<'_>) -> String {
        match self {
            Self::Text(text) => text,
            Self::Name(name) => printer.python_str(name),
        }
    }

    /// For a place where the reference joins, which takes strings only.
    fn into_joined(self) -> Outcome<String> {
        match self {
            Self::Text(text) => Ok(text),
            Self::Name(name) => name.as_str().map(str::to_owned).ok_or(Inexpressible),
        }
    }
}

impl Type<'_> {
    /// The comment lines before a property or an item: the description, then the constraints on one line.
    fn comment(&self, printer: Printer<'_>) -> Outcome<String> {
        let mut text = match self
            .description
            .filter(|description| description.is_truthy())
        {
            Some(description) => printer.comment_lines(description)?,
            None => String::new(),
        };
        if !self.constraints.is_empty() {
            let print =
                |(key, value): &(&str, &Value<'_>)| format!("{key}: {}", printer.python_str(value));
            let constraints: Vec<String> = self.constraints.iter().map(print).collect();
            text.push_str(&printer.indent());
            text.push_str("// ");
            text.push_str(&constraints.join(", "));
            text.push('\n');
        }
        Ok(text)
    }

    fn text(&self, printer: Printer<'_>) -> Outcome<TypeText<'_>> {
        let text = match &self.shape {
            Shape::Scalar(name) if name.as_str() == Some("integer") => "number".to_owned(),
            Shape::Scalar(name) => return Ok(TypeText::Name(name)),
            Shape::Object(object) => object.text(printer)?,
            Shape::Array(item) => {
                let inner = printer.deeper();
                let comment = item.comment(inner)?;
                if comment.is_empty() {
                    format!("Array<{}>", item.text(printer)?.into_string(printer))
                } else {
                    let item = item.text(inner)?.into_joined()?;
                    let (indent, outer) = (inner.indent(), printer.indent());
                    format!("Array<\n{comment}{indent}{item}\n{outer}>")
                }
            }
            Shape::Enum(values) => {
                let print = |value: &Cow<'_, Value<'_>>| match value.as_str() {
                    Some(text) => format!("\"{text}\""),
                    None => printer.python_str(value),
                };
                values.iter().map(print).collect::<Vec<_>>().join(" | ")
            }
            Shape::AnyOf(choices) => {
                let print = |choice: &Type<'_>| choice.text(printer)?.into_joined();
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
    fn text(&self, printer: Printer<'_>) -> Outcome<String> {
        let inner = printer.deeper();
        let mut ordered: Vec<&Property<'_>> = self.properties.iter().collect();
        ordered.sort_by(|a, b| b.required.cmp(&a.required).then_with(|| a.name.cmp(b.name)));
        let mut lines: Vec<String> = ordered
            .into_iter()
            .map(|property| property.text(inner))
            .collect::<Outcome<_>>()?;
        if let Some(additional) = &self.additional {
            let value = match additional {
                Additional::Any => "any".to_owned(),
                Additional::Never => "never".to_owned(),
                Additional::Typed(value) => value.text(inner)?.into_string(inner),
                Additional::Invalid => return Err(Inexpressible),
            };
            lines.push(format!("{}[k: string]: {value}", inner.indent()));
        }
        if lines.is_empty() {
            return Ok("{}".to_owned());
        }
        Ok(format!("{{\n{}\n{}}}", lines.join(",\n"), printer.indent()))
    }

    /// The root as an interface. Unlike [`Self::text`] the reference keeps the properties in their own order here, and
    /// leaves out `additionalProperties`.
    fn root_interface(&self, printer: Printer<'_>) -> Outcome<String> {
        let lines: Vec<String> = self
            .properties
            .iter()
            .map(|property| property.text(printer.deeper()))
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
    fn text(&self, printer: Printer<'_>) -> Outcome<String> {
        let indent = printer.indent();
        let mut text = self.value.comment(printer)?;
        if let Some(default) = self.default {
            text.push_str(&indent);
            text.push_str("// Default: ");
            match default {
                Value::Bool(_) | Value::Int(_) | Value::BigInt(_) | Value::Float(_) => {
                    text.push_str(&printer.python_str(default));
                }
                other => other.write_json(Spacing::Spaced, &mut text),
            }
            text.push('\n');
        }
        let mark = if self.required { "" } else { "?" };
        let value = self.value.text(printer)?.into_string(printer);
        Ok(format!("{text}{indent}{}{mark}: {value}", self.name))
    }
}
