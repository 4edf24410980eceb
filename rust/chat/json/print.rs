//! Values as Python's `json.dumps` and `str` print them.

use std::fmt::Write as _;

use super::Value;

/// The blanks that `json.dumps` puts after `,` and `:`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spacing {
    /// `{"a": 1, "b": 2}`: Python's default.
    Spaced,
    /// `{"a":1,"b":2}`
    Compact,
}

impl Value<'_> {
    /// Prints the value as `json.dumps(value, ensure_ascii=False)` with the given spacing.
    pub fn write_json(&self, spacing: Spacing, out: &mut String) {
        let (comma, colon) = match spacing {
            Spacing::Spaced => (", ", ": "),
            Spacing::Compact => (",", ":"),
        };
        match self {
            Self::Null => out.push_str("null"),
            Self::Bool(true) => out.push_str("true"),
            Self::Bool(false) => out.push_str("false"),
            Self::Int(value) => write_display(value, out),
            Self::BigInt(digits) => out.push_str(digits),
            Self::Float(value) if value.is_nan() => out.push_str("NaN"),
            Self::Float(value) if value.is_infinite() => {
                out.push_str(if *value > 0.0 {
                    "Infinity"
                } else {
                    "-Infinity"
                });
            }
            Self::Float(value) => write_float(*value, out),
            Self::String(text) => write_quoted(text, out),
            Self::Array(items) => {
                out.push('[');
                for (i, item) in items.iter().enumerate() {
                    if i > 0 {
                        out.push_str(comma);
                    }
                    item.write_json(spacing, out);
                }
                out.push(']');
            }
            Self::Object(object) => {
                out.push('{');
                for (i, (key, value)) in object.iter().enumerate() {
                    if i > 0 {
                        out.push_str(comma);
                    }
                    write_quoted(key, out);
                    out.push_str(colon);
                    value.write_json(spacing, out);
                }
                out.push('}');
            }
        }
    }

    /// Prints a scalar as Python's `str` does (`None`, `True`, `1e+20`, strings without quotes); false for a list or
    /// an object, which Python would print in its own notation.
    #[must_use]
    pub fn write_python_str(&self, out: &mut String) -> bool {
        match self {
            Self::Null => out.push_str("None"),
            Self::Bool(true) => out.push_str("True"),
            Self::Bool(false) => out.push_str("False"),
            Self::Int(value) => write_display(value, out),
            Self::BigInt(digits) => out.push_str(digits),
            Self::Float(value) => write_float(*value, out),
            Self::String(text) => out.push_str(text),
            Self::Array(_) | Self::Object(_) => return false,
        }
        true
    }
}

/// Prints a float as Python's `repr` does: the shortest digits that read back as the same number, with an exponent
/// below 1e-4 and from 1e16 on.
pub fn write_float(value: f64, out: &mut String) {
    if value.is_nan() {
        out.push_str("nan");
        return;
    }
    if value.is_infinite() {
        out.push_str(if value > 0.0 { "inf" } else { "-inf" });
        return;
    }
    // The standard library has as short a form, but of two that are equally near it takes the upper one, and Python the
    // even one: 2^-25 is 2.9802322387695312e-08 there and …313e-08 here.
    let mut buffer = zmij::Buffer::new();
    let shortest = buffer.format_finite(value);
    let (mantissa, exponent) = shortest.split_once('e').unwrap_or((shortest, "0"));
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(mantissa) => ("-", mantissa),
        None => ("", mantissa),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let leading_zeros = digits.len() - digits.trim_start_matches('0').len();
    let exponent: i32 = exponent.parse().unwrap_or(0);
    // Where the point stands, counted from the first digit that is not zero.
    let zeros_before = i32::try_from(leading_zeros).unwrap_or(0);
    let point = i32::try_from(whole.len()).unwrap_or(0) - zeros_before + exponent;
    let digits = digits.trim_matches('0');
    out.push_str(sign);
    match (digits.is_empty(), point) {
        (true, _) => out.push_str("0.0"),
        (false, 1..=16) => {
            let point = point.unsigned_abs() as usize;
            let whole = &digits[..point.min(digits.len())];
            let fraction = &digits[whole.len()..];
            let fraction = if fraction.is_empty() { "0" } else { fraction };
            let _ = write!(out, "{whole:0<point$}.{fraction}");
        }
        (false, -3..=0) => {
            let zeros = point.unsigned_abs() as usize;
            let _ = write!(out, "0.{:0<zeros$}{digits}", "");
        }
        _ => {
            let (first, rest) = digits.split_at(1);
            let point_rest = if rest.is_empty() { "" } else { "." };
            let sign = if point < 1 { '-' } else { '+' };
            let exponent = (point - 1).abs();
            let _ = write!(out, "{first}{point_rest}{rest}e{sign}{exponent:02}");
        }
    }
}

fn write_display(value: impl std::fmt::Display, out: &mut String) {
    // Writing to a `String` cannot fail.
    let _ = write!(out, "{value}");
}

/// Prints a string as `json.dumps(text, ensure_ascii=False)`.
pub fn write_quoted(text: &str, out: &mut String) {
    out.push('"');
    let mut written = 0;
    for (i, byte) in text.bytes().enumerate() {
        let escape = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0x08 => "\\b",
            0x0C => "\\f",
            0x00..=0x1F => "",
            _ => continue,
        };
        out.push_str(&text[written..i]);
        if escape.is_empty() {
            let _ = write!(out, "\\u{byte:04x}");
        } else {
            out.push_str(escape);
        }
        written = i + 1;
    }
    out.push_str(&text[written..]);
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spaced(text: &str) -> String {
        let mut out = String::new();
        Value::from_json(text.as_bytes())
            .unwrap()
            .write_json(Spacing::Spaced, &mut out);
        out
    }

    #[test]
    fn numbers_keep_pythons_spelling() {
        // Left: as in a file. Right: json.dumps(json.loads(left)) of CPython 3.11.
        for (read, printed) in [
            ("1", "1"),
            ("1.0", "1.0"),
            ("1e2", "100.0"),
            ("-0.0", "-0.0"),
            ("-0", "0"),
            (
                "123456789012345678901234567890",
                "123456789012345678901234567890",
            ),
            ("9007199254740993", "9007199254740993"),
            ("1e-7", "1e-07"),
            ("0.0001", "0.0001"),
            ("0.00001", "1e-05"),
            ("1e15", "1000000000000000.0"),
            ("1e16", "1e+16"),
            ("1.5e300", "1.5e+300"),
            ("123456789.125", "123456789.125"),
            ("0.1000000000000000055511151231257827", "0.1"),
            ("5e-324", "5e-324"),
            ("2.98023223876953125e-08", "2.9802322387695312e-08"),
            ("1700000000123456.25", "1700000000123456.2"),
            ("1700000000123456.75", "1700000000123456.8"),
            ("9999999999999998.0", "9999999999999998.0"),
            ("-1234.5e-7", "-0.00012345"),
            ("-12e-6", "-1.2e-05"),
            ("0e5", "0.0"),
            ("100", "100"),
            ("120e1", "1200.0"),
            ("NaN", "NaN"),
            ("-Infinity", "-Infinity"),
            ("1e400", "Infinity"),
        ] {
            assert_eq!(spaced(read), printed, "{read}");
        }
    }

    #[test]
    fn strings_are_escaped_as_python_does_without_ascii() {
        assert_eq!(
            spaced(r#""<&>'\"\\\/\u0001\u007f\u2028é\t\n\r\b\f""#),
            "\"<&>'\\\"\\\\/\\u0001\u{7f}\u{2028}é\\t\\n\\r\\b\\f\""
        );
    }
}
