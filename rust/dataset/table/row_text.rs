//! A row of a record batch as JSON text.
//!
//! The text is what `json.dumps` prints of the row as `datasets` or `pyarrow` give it to Python: integers stay
//! integers, floats stay floats to the last bit, nulls are there, and columns that hold JSON text by their type are
//! JSON. (`arrow-json` has null for NaN, hexadecimal digits for binary text, and needs four crates more.) What Python has
//! and JSON has not is a string of ISO 8601.

use std::fmt::{Debug, Write as _};

use arrow_array::cast::AsArray as _;
use arrow_array::types::{
    ArrowDictionaryKeyType, ArrowPrimitiveType, ArrowTimestampType, Date32Type, Date64Type,
    Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, DecimalType,
    DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType, DurationSecondType,
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    RunEndIndexType, Time32MillisecondType, Time32SecondType, Time64MicrosecondType,
    Time64NanosecondType, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, RecordBatch, StructArray};
use arrow_schema::{DataType, Field, Fields, Schema, TimeUnit};

use crate::chat::json::{Spacing, Value, write_quoted};
use crate::error::{Error, ErrorKind, Result};

/// The extension type of strings that are JSON text: `Json` of `datasets`, and the logical type of that name in Parquet.
const JSON_EXTENSION: &str = "arrow.json";

/// Whether rows of this schema have JSON text.
///
/// # Errors
/// [`ErrorKind::Io`] under the name of the column for a type without.
pub(super) fn check(schema: &Schema) -> Result<()> {
    check_fields(schema.fields())
}

fn check_fields(fields: &Fields) -> Result<()> {
    for field in fields {
        check_type(field.data_type()).map_err(|error| error.at(field.name().clone()))?;
    }
    Ok(())
}

fn check_type(data_type: &DataType) -> Result<()> {
    match data_type {
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _) => check_type(item.data_type()),
        DataType::Struct(fields) => check_fields(fields),
        DataType::Dictionary(_, values) => check_type(values),
        DataType::RunEndEncoded(_, values) => check_type(values.data_type()),
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(fields) if fields.len() == 2 && is_text(fields[0].data_type()) => {
                check_type(fields[1].data_type())
            }
            _ => Err(untold("expected a map from strings", data_type)),
        },
        DataType::Union(..) | DataType::Interval(_) => {
            Err(untold("expected a type that has a JSON form", data_type))
        }
        _ => Ok(()),
    }
}

fn is_text(data_type: &DataType) -> bool {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Dictionary(_, values) => is_text(values),
        _ => false,
    }
}

fn untold(expected: &str, found: &DataType) -> Error {
    Error::new(ErrorKind::Io, format!("{expected}, found {found}"))
}

/// Appends a row as a JSON object on one line, every column in it.
///
/// # Errors
/// [`ErrorKind::Conversation`] with the path of the value for bytes that are not UTF-8, for text that is to be JSON and
/// is not, and for a time that no calendar has.
pub(super) fn write_row(batch: &RecordBatch, row: usize, out: &mut String) -> Result<()> {
    write_object(batch.schema_ref().fields(), batch.columns(), row, out)
}

fn write_object(fields: &Fields, columns: &[ArrayRef], row: usize, out: &mut String) -> Result<()> {
    let mut before = '{';
    for (field, column) in fields.iter().zip(columns) {
        out.push(before);
        before = ',';
        write_quoted(field.name(), out);
        out.push(':');
        write_value(column, field, row, out).map_err(|error| error.at(field.name().clone()))?;
    }
    if before == '{' {
        out.push('{');
    }
    out.push('}');
    Ok(())
}

fn write_value(array: &dyn Array, field: &Field, row: usize, out: &mut String) -> Result<()> {
    if array.is_null(row) {
        out.push_str("null");
        return Ok(());
    }
    match array.data_type() {
        DataType::Null => out.push_str("null"),
        DataType::Boolean => {
            let value = array.as_boolean().value(row);
            out.push_str(if value { "true" } else { "false" });
        }
        DataType::Int8 => write_number::<Int8Type>(array, row, out),
        DataType::Int16 => write_number::<Int16Type>(array, row, out),
        DataType::Int32 => write_number::<Int32Type>(array, row, out),
        DataType::Int64 => write_number::<Int64Type>(array, row, out),
        DataType::UInt8 => write_number::<UInt8Type>(array, row, out),
        DataType::UInt16 => write_number::<UInt16Type>(array, row, out),
        DataType::UInt32 => write_number::<UInt32Type>(array, row, out),
        DataType::UInt64 => write_number::<UInt64Type>(array, row, out),
        DataType::Float16 => write_float::<Float16Type>(array, row, out),
        DataType::Float32 => write_float::<Float32Type>(array, row, out),
        DataType::Float64 => write_float::<Float64Type>(array, row, out),
        DataType::Decimal32(..) => write_decimal::<Decimal32Type>(array, row, out),
        DataType::Decimal64(..) => write_decimal::<Decimal64Type>(array, row, out),
        DataType::Decimal128(..) => write_decimal::<Decimal128Type>(array, row, out),
        DataType::Decimal256(..) => write_decimal::<Decimal256Type>(array, row, out),
        DataType::Utf8 => write_text(array.as_string::<i32>().value(row), field, out)?,
        DataType::LargeUtf8 => write_text(array.as_string::<i64>().value(row), field, out)?,
        DataType::Utf8View => write_text(array.as_string_view().value(row), field, out)?,
        DataType::Binary => write_bytes(array.as_binary::<i32>().value(row), field, out)?,
        DataType::LargeBinary => write_bytes(array.as_binary::<i64>().value(row), field, out)?,
        DataType::BinaryView => write_bytes(array.as_binary_view().value(row), field, out)?,
        DataType::FixedSizeBinary(_) => {
            write_bytes(array.as_fixed_size_binary().value(row), field, out)?;
        }
        DataType::List(item) => write_list(&array.as_list::<i32>().value(row), item, out)?,
        DataType::LargeList(item) => write_list(&array.as_list::<i64>().value(row), item, out)?,
        DataType::ListView(item) => write_list(&array.as_list_view::<i32>().value(row), item, out)?,
        DataType::LargeListView(item) => {
            write_list(&array.as_list_view::<i64>().value(row), item, out)?;
        }
        DataType::FixedSizeList(item, _) => {
            write_list(&array.as_fixed_size_list().value(row), item, out)?;
        }
        DataType::Struct(fields) => {
            write_object(fields, array.as_struct().columns(), row, out)?;
        }
        DataType::Map(..) => write_map(&array.as_map().value(row), out)?,
        DataType::Dictionary(key, _) => match **key {
            DataType::Int8 => write_of_dictionary::<Int8Type>(array, field, row, out)?,
            DataType::Int16 => write_of_dictionary::<Int16Type>(array, field, row, out)?,
            DataType::Int32 => write_of_dictionary::<Int32Type>(array, field, row, out)?,
            DataType::Int64 => write_of_dictionary::<Int64Type>(array, field, row, out)?,
            DataType::UInt8 => write_of_dictionary::<UInt8Type>(array, field, row, out)?,
            DataType::UInt16 => write_of_dictionary::<UInt16Type>(array, field, row, out)?,
            DataType::UInt32 => write_of_dictionary::<UInt32Type>(array, field, row, out)?,
            _ => write_of_dictionary::<UInt64Type>(array, field, row, out)?,
        },
        DataType::RunEndEncoded(ends, values) => match ends.data_type() {
            DataType::Int16 => write_of_run::<Int16Type>(array, values, row, out)?,
            DataType::Int32 => write_of_run::<Int32Type>(array, values, row, out)?,
            _ => write_of_run::<Int64Type>(array, values, row, out)?,
        },
        _ => return write_time(array, row, out),
    }
    Ok(())
}

fn write_time(array: &dyn Array, row: usize, out: &mut String) -> Result<()> {
    match array.data_type() {
        DataType::Date32 => write_iso(
            array.as_primitive::<Date32Type>().value_as_date(row),
            "",
            out,
        ),
        DataType::Date64 => write_iso(
            array.as_primitive::<Date64Type>().value_as_date(row),
            "",
            out,
        ),
        DataType::Time32(TimeUnit::Second) => write_iso(
            array.as_primitive::<Time32SecondType>().value_as_time(row),
            "",
            out,
        ),
        DataType::Time32(_) => write_iso(
            array
                .as_primitive::<Time32MillisecondType>()
                .value_as_time(row),
            "",
            out,
        ),
        DataType::Time64(TimeUnit::Microsecond) => write_iso(
            array
                .as_primitive::<Time64MicrosecondType>()
                .value_as_time(row),
            "",
            out,
        ),
        DataType::Time64(_) => write_iso(
            array
                .as_primitive::<Time64NanosecondType>()
                .value_as_time(row),
            "",
            out,
        ),
        DataType::Timestamp(unit, zone) => {
            // Arrow holds what a clock in Greenwich shows, whatever the zone.
            let zone = zone.as_ref().map_or("", |_| "+00:00");
            match unit {
                TimeUnit::Second => write_timestamp::<TimestampSecondType>(array, row, zone, out),
                TimeUnit::Millisecond => {
                    write_timestamp::<TimestampMillisecondType>(array, row, zone, out)
                }
                TimeUnit::Microsecond => {
                    write_timestamp::<TimestampMicrosecondType>(array, row, zone, out)
                }
                TimeUnit::Nanosecond => {
                    write_timestamp::<TimestampNanosecondType>(array, row, zone, out)
                }
            }
        }
        DataType::Duration(unit) => {
            let (value, digits) = match unit {
                TimeUnit::Second => (array.as_primitive::<DurationSecondType>().value(row), 0),
                TimeUnit::Millisecond => (
                    array.as_primitive::<DurationMillisecondType>().value(row),
                    3,
                ),
                TimeUnit::Microsecond => (
                    array.as_primitive::<DurationMicrosecondType>().value(row),
                    6,
                ),
                TimeUnit::Nanosecond => {
                    (array.as_primitive::<DurationNanosecondType>().value(row), 9)
                }
            };
            write_duration(value, digits, out);
            Ok(())
        }
        // Refused by `check`.
        other => Err(untold("expected a type that has a JSON form", other)),
    }
}

fn write_number<T: ArrowPrimitiveType<Native: std::fmt::Display>>(
    array: &dyn Array,
    row: usize,
    out: &mut String,
) {
    // Writing to a `String` cannot fail.
    let _ = write!(out, "{}", array.as_primitive::<T>().value(row));
}

/// A float as the one of 64 bits that Python makes of it.
fn write_float<T: ArrowPrimitiveType<Native: Into<f64>>>(
    array: &dyn Array,
    row: usize,
    out: &mut String,
) {
    let number = array.as_primitive::<T>().value(row).into();
    Value::Float(number).write_json(Spacing::Compact, out);
}

/// All digits, as a number: an integer if the type has no place after the point.
fn write_decimal<T: DecimalType>(array: &dyn Array, row: usize, out: &mut String) {
    out.push_str(&array.as_primitive::<T>().value_as_string(row));
}

fn write_text(text: &str, field: &Field, out: &mut String) -> Result<()> {
    if field.extension_type_name() != Some(JSON_EXTENSION) {
        write_quoted(text, out);
        return Ok(());
    }
    Value::from_json(text.as_bytes())?;
    // A line end is a blank between two values of JSON, and ends a line elsewhere.
    let blank = |char| {
        if matches!(char, '\n' | '\r') {
            ' '
        } else {
            char
        }
    };
    out.extend(text.chars().map(blank));
    Ok(())
}

fn write_bytes(bytes: &[u8], field: &Field, out: &mut String) -> Result<()> {
    let Ok(text) = std::str::from_utf8(bytes) else {
        let message = "expected text, found bytes that are not UTF-8";
        return Err(Error::new(ErrorKind::Conversation, message));
    };
    write_text(text, field, out)
}

fn write_list(items: &ArrayRef, field: &Field, out: &mut String) -> Result<()> {
    out.push('[');
    for index in 0..items.len() {
        if index > 0 {
            out.push(',');
        }
        write_value(items, field, index, out).map_err(|error| error.at_index(index))?;
    }
    out.push(']');
    Ok(())
}

fn write_map(entries: &StructArray, out: &mut String) -> Result<()> {
    let (keys, values) = (entries.column(0), entries.column(1));
    let (key, value) = (&entries.fields()[0], &entries.fields()[1]);
    out.push('{');
    for index in 0..entries.len() {
        if index > 0 {
            out.push(',');
        }
        write_value(keys, key, index, out)?;
        out.push(':');
        write_value(values, value, index, out).map_err(|error| error.at_index(index))?;
    }
    out.push('}');
    Ok(())
}

fn write_of_dictionary<K: ArrowDictionaryKeyType>(
    array: &dyn Array,
    field: &Field,
    row: usize,
    out: &mut String,
) -> Result<()> {
    let array = array.as_dictionary::<K>();
    if let Some(key) = array.key(row) {
        write_value(array.values(), field, key, out)
    } else {
        out.push_str("null");
        Ok(())
    }
}

fn write_of_run<E: RunEndIndexType>(
    array: &dyn Array,
    field: &Field,
    row: usize,
    out: &mut String,
) -> Result<()> {
    let array = array.as_run::<E>();
    write_value(array.values(), field, array.get_physical_index(row), out)
}

fn write_timestamp<T: ArrowTimestampType>(
    array: &dyn Array,
    row: usize,
    zone: &str,
    out: &mut String,
) -> Result<()> {
    write_iso(array.as_primitive::<T>().value_as_datetime(row), zone, out)
}

/// What a date or a time shows of itself for programmers is its form of ISO 8601.
fn write_iso(time: Option<impl Debug>, zone: &str, out: &mut String) -> Result<()> {
    let Some(time) = time else {
        let message = "expected a time of the calendar, found one beyond it";
        return Err(Error::new(ErrorKind::Conversation, message));
    };
    let _ = write!(out, "\"{time:?}{zone}\"");
    Ok(())
}

/// `"PT1.5S"`: a duration in seconds, `digits` of which stand after the point.
fn write_duration(value: i64, digits: u32, out: &mut String) {
    let unit = 10_u64.pow(digits);
    let sign = if value < 0 { "-" } else { "" };
    let (seconds, rest) = (value.unsigned_abs() / unit, value.unsigned_abs() % unit);
    let _ = write!(out, "\"{sign}PT{seconds}");
    if rest > 0 {
        let fraction = format!("{rest:0width$}", width = digits as usize);
        let _ = write!(out, ".{}", fraction.trim_end_matches('0'));
    }
    out.push_str("S\"");
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::Arc;

    use arrow_array::builder::{Int32Builder, ListBuilder, MapBuilder, StringBuilder};
    use arrow_array::{
        BinaryArray, BooleanArray, Date32Array, Decimal128Array, DictionaryArray,
        DurationMicrosecondArray, Float32Array, Float64Array, Int64Array, IntervalYearMonthArray,
        NullArray, RunArray, StringArray, StringViewArray, Time32SecondArray,
        TimestampMicrosecondArray, TimestampMillisecondArray, UInt64Array,
    };

    use super::*;

    fn batch(columns: Vec<(Field, ArrayRef)>) -> RecordBatch {
        let (fields, arrays): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
        RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap()
    }

    fn of(array: impl Array + 'static) -> RecordBatch {
        let field = Field::new("a", array.data_type().clone(), true);
        batch(vec![(field, Arc::new(array))])
    }

    /// The rows of a table with one column, `a`, as a list of their values.
    fn texts(batch: &RecordBatch) -> String {
        check(batch.schema_ref()).unwrap();
        let text = |row| {
            let mut text = String::new();
            write_row(batch, row, &mut text).unwrap();
            assert!(Value::from_json(text.as_bytes()).is_ok(), "{text}");
            text[r#"{"a":"#.len()..text.len() - 1].to_owned()
        };
        (0..batch.num_rows())
            .map(text)
            .collect::<Vec<_>>()
            .join(" ")
    }

    #[test]
    fn numbers_are_what_python_prints() {
        let integers = Int64Array::from(vec![Some(i64::MIN), Some((1 << 53) + 1), None]);
        assert_eq!(
            texts(&of(integers)),
            "-9223372036854775808 9007199254740993 null"
        );
        assert_eq!(
            texts(&of(UInt64Array::from(vec![u64::MAX]))),
            "18446744073709551615"
        );
        let floats = vec![1.0, 0.1, -0.0, 1e22, f64::NAN, f64::NEG_INFINITY];
        assert_eq!(
            texts(&of(Float64Array::from(floats))),
            "1.0 0.1 -0.0 1e+22 NaN -Infinity"
        );
        assert_eq!(
            texts(&of(Float32Array::from(vec![0.1]))),
            "0.10000000149011612"
        );
        let decimals = Decimal128Array::from(vec![150, -5]);
        let decimals = decimals.with_precision_and_scale(10, 2).unwrap();
        assert_eq!(texts(&of(decimals)), "1.50 -0.05");
        assert_eq!(
            texts(&of(BooleanArray::from(vec![Some(true), Some(false), None]))),
            "true false null"
        );
        assert_eq!(texts(&of(NullArray::new(2))), "null null");
    }

    #[test]
    fn texts_come_out_of_all_their_types() {
        let values = ["a\"\n", "a text of more than twelve bytes"];
        let expected = r#""a\"\n" "a text of more than twelve bytes""#;
        assert_eq!(texts(&of(StringArray::from(values.to_vec()))), expected);
        assert_eq!(texts(&of(StringViewArray::from(values.to_vec()))), expected);
        let bytes: BinaryArray = values.map(|text| Some(text.as_bytes())).iter().collect();
        assert_eq!(texts(&of(bytes)), expected);
        let dictionary: DictionaryArray<Int32Type> =
            [Some("x"), None, Some("x")].into_iter().collect();
        assert_eq!(texts(&of(dictionary)), r#""x" null "x""#);
        let run: RunArray<Int32Type> = [Some("x"), Some("x"), None].into_iter().collect();
        assert_eq!(texts(&of(run)), r#""x" "x" null"#);
    }

    #[test]
    fn json_text_is_json_if_the_type_says_so() {
        let texts_of = |array: StringArray| {
            let field = Field::new("a", DataType::Utf8, true).with_metadata(HashMap::from([(
                "ARROW:extension:name".to_owned(),
                JSON_EXTENSION.to_owned(),
            )]));
            batch(vec![(field, Arc::new(array))])
        };
        let batch = texts_of(vec![Some("{\"b\":\r\n[1.0]}"), None, Some("null")].into());
        assert_eq!(texts(&batch), "{\"b\":  [1.0]} null null");
        let broken = texts_of(vec!["{"].into());
        let error = write_row(&broken, 0, &mut String::new()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Json);
        assert_eq!(error.place().path(), "a");
    }

    #[test]
    fn lists_and_objects_nest() {
        let mut lists = ListBuilder::new(Int32Builder::new());
        lists.append_value([Some(1), None]);
        lists.append_value([]);
        lists.append_null();
        assert_eq!(texts(&of(lists.finish())), "[1,null] [] null");

        let mut maps = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
        maps.keys().append_value("k\"");
        maps.values().append_value(7);
        maps.append(true).unwrap();
        maps.append(true).unwrap();
        assert_eq!(texts(&of(maps.finish())), r#"{"k\"":7} {}"#);

        let fields: Fields = vec![
            Field::new("role", DataType::Utf8, true),
            Field::new("n", DataType::Int64, true),
        ]
        .into();
        let columns: Vec<ArrayRef> = vec![
            Arc::new(StringArray::from(vec![Some("user"), Some("x")])),
            Arc::new(Int64Array::from(vec![None, Some(1)])),
        ];
        let objects = StructArray::new(fields, columns, Some(vec![true, false].into()));
        assert_eq!(texts(&of(objects)), r#"{"role":"user","n":null} null"#);
        assert_eq!(texts(&of(StructArray::new_empty_fields(1, None))), "{}");
    }

    #[test]
    fn times_are_in_iso_8601() {
        let micros = vec![1_704_164_645_123_456, -1_000_000];
        assert_eq!(
            texts(&of(TimestampMicrosecondArray::from(micros))),
            r#""2024-01-02T03:04:05.123456" "1969-12-31T23:59:59""#
        );
        let zoned = TimestampMillisecondArray::from(vec![1_704_164_645_000]);
        assert_eq!(
            texts(&of(zoned.with_timezone("Europe/Berlin"))),
            r#""2024-01-02T03:04:05+00:00""#
        );
        assert_eq!(
            texts(&of(Date32Array::from(vec![19_724]))),
            r#""2024-01-02""#
        );
        assert_eq!(
            texts(&of(Time32SecondArray::from(vec![3723]))),
            r#""01:02:03""#
        );
        let durations = DurationMicrosecondArray::from(vec![1_500_000, -3_000_000, 10]);
        assert_eq!(texts(&of(durations)), r#""PT1.5S" "-PT3S" "PT0.00001S""#);
        let beyond = of(TimestampMillisecondArray::from(vec![i64::MAX]));
        assert!(write_row(&beyond, 0, &mut String::new()).is_err());
    }

    #[test]
    fn what_has_no_json_form_is_an_error_with_its_place() {
        let intervals = of(IntervalYearMonthArray::from(vec![1]));
        assert_eq!(
            check(intervals.schema_ref()).unwrap_err().to_string(),
            "a: expected a type that has a JSON form, found Interval(YearMonth)"
        );
        let mut maps = MapBuilder::new(None, Int32Builder::new(), Int32Builder::new());
        maps.append(true).unwrap();
        let error = check(of(maps.finish()).schema_ref()).unwrap_err();
        assert!(
            error
                .message()
                .starts_with("expected a map from strings, found Map("),
            "{error}"
        );
        let bytes = of(BinaryArray::from(vec![&b"\xFF"[..]]));
        let error = write_row(&bytes, 0, &mut String::new()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conversation);
        assert_eq!(
            error.to_string(),
            "a: expected text, found bytes that are not UTF-8"
        );
    }
}
