//! The values of one column that are gathered for the next batch of a table.

use std::sync::Arc;

use arrow_array::builder::{
    BooleanBuilder, Float64Builder, Int32Builder, Int64Builder, StringBuilder,
};
use arrow_array::types::{Float32Type, Int8Type, Int32Type, Int64Type, UInt8Type};
use arrow_array::{ArrayRef, ArrowPrimitiveType, ListArray, PrimitiveArray};
use arrow_buffer::{NullBufferBuilder, OffsetBufferBuilder};
use arrow_schema::{DataType, Field};

use crate::dataset::columns::{Cell, KeptKind, Part, Row, Width};

/// The values of a column. A batch ends before its values are more than 2^31, so that 32 bits count them.
pub(super) enum Column {
    Text(StringBuilder),
    Integer(Int64Builder),
    Float(Float64Builder),
    Boolean(BooleanBuilder),
    Ids32(Lists<Int32Type>),
    Ids64(Lists<Int64Type>),
    Mask8(Lists<UInt8Type>),
    Mask64(Lists<Int64Type>),
    Weights(Lists<Float32Type>),
    Labels32(Lists<Int32Type>),
    Labels64(Lists<Int64Type>),
    Ones(Lists<Int8Type>),
    Length(Int64Builder),
    Cut(Int32Builder),
}

impl Column {
    /// A column of values that are kept from records.
    pub(super) fn kept(kind: KeptKind) -> Self {
        match kind {
            KeptKind::Text | KeptKind::Json => Self::Text(StringBuilder::new()),
            KeptKind::Integer => Self::Integer(Int64Builder::new()),
            KeptKind::Float => Self::Float(Float64Builder::new()),
            KeptKind::Boolean => Self::Boolean(BooleanBuilder::new()),
        }
    }

    /// A column of what is made from records.
    pub(super) fn part(part: Part) -> Self {
        match part {
            Part::InputIds(Width::Narrow) => Self::Ids32(Lists::new()),
            Part::InputIds(Width::Wide) => Self::Ids64(Lists::new()),
            Part::LossMask(Width::Narrow) => Self::Mask8(Lists::new()),
            Part::LossMask(Width::Wide) => Self::Mask64(Lists::new()),
            Part::LossWeight => Self::Weights(Lists::new()),
            Part::Labels(Width::Narrow) => Self::Labels32(Lists::new()),
            Part::Labels(Width::Wide) => Self::Labels64(Lists::new()),
            Part::AttentionMask => Self::Ones(Lists::new()),
            Part::SeqLen => Self::Length(Int64Builder::new()),
            Part::CutTokens => Self::Cut(Int32Builder::new()),
        }
    }

    /// The type of its values.
    pub(super) fn data_type(&self) -> DataType {
        match self {
            Self::Text(_) => DataType::Utf8,
            Self::Integer(_) | Self::Length(_) => DataType::Int64,
            Self::Float(_) => DataType::Float64,
            Self::Boolean(_) => DataType::Boolean,
            Self::Cut(_) => DataType::Int32,
            Self::Ids32(_) | Self::Labels32(_) => list_of(DataType::Int32),
            Self::Ids64(_) | Self::Mask64(_) | Self::Labels64(_) => list_of(DataType::Int64),
            Self::Mask8(_) => list_of(DataType::UInt8),
            Self::Weights(_) => list_of(DataType::Float32),
            Self::Ones(_) => list_of(DataType::Int8),
        }
    }

    /// Appends a kept value, which is of the column's kind.
    pub(super) fn push_cell(&mut self, cell: Option<Cell<'_>>) {
        match (self, cell) {
            (Self::Text(values), Some(Cell::Text(text))) => values.append_value(text),
            (Self::Text(values), _) => values.append_null(),
            (Self::Integer(values), Some(Cell::Integer(number))) => values.append_value(number),
            (Self::Integer(values), _) => values.append_null(),
            (Self::Float(values), Some(Cell::Float(number))) => values.append_value(number),
            (Self::Float(values), _) => values.append_null(),
            (Self::Boolean(values), Some(Cell::Boolean(value))) => values.append_value(value),
            (Self::Boolean(values), _) => values.append_null(),
            _ => {}
        }
    }

    /// Appends what the column takes of a row.
    pub(super) fn push_row(&mut self, row: &Row) {
        let ids = row.input_ids.iter();
        let mask = row.loss_mask.iter();
        match self {
            Self::Ids32(lists) => lists.push(ids.map(|id| id.cast_signed())),
            Self::Ids64(lists) => lists.push(ids.map(|&id| id.into())),
            Self::Mask8(lists) => lists.push(mask.copied()),
            Self::Mask64(lists) => lists.push(mask.map(|&trains| trains.into())),
            Self::Weights(lists) => match &row.loss_weight {
                Some(weights) => lists.push(weights.iter().copied()),
                None => lists.push_null(),
            },
            Self::Labels32(lists) => lists.push(row.labels().map(|label| label as i32)),
            Self::Labels64(lists) => lists.push(row.labels()),
            Self::Ones(lists) => lists.push(ids.map(|_| 1)),
            Self::Length(values) => values.append_value((ids.len() as u64).cast_signed()),
            Self::Cut(values) => values.append_value(row.cut_tokens.cast_signed()),
            Self::Text(_) | Self::Integer(_) | Self::Float(_) | Self::Boolean(_) => {}
        }
    }

    /// All values since the last time.
    pub(super) fn take(&mut self) -> ArrayRef {
        match self {
            Self::Text(values) => Arc::new(values.finish()),
            Self::Integer(values) | Self::Length(values) => Arc::new(values.finish()),
            Self::Float(values) => Arc::new(values.finish()),
            Self::Boolean(values) => Arc::new(values.finish()),
            Self::Cut(values) => Arc::new(values.finish()),
            Self::Ids32(lists) | Self::Labels32(lists) => lists.take(),
            Self::Ids64(lists) | Self::Mask64(lists) | Self::Labels64(lists) => lists.take(),
            Self::Mask8(lists) => lists.take(),
            Self::Weights(lists) => lists.take(),
            Self::Ones(lists) => lists.take(),
        }
    }
}

/// Everything is nullable, as in all tables of `datasets`: it does not join tables that differ in that.
fn item(data_type: DataType) -> Field {
    Field::new_list_field(data_type, true)
}

fn list_of(data_type: DataType) -> DataType {
    DataType::List(Arc::new(item(data_type)))
}

/// Lists of numbers, laid end to end.
pub(super) struct Lists<T: ArrowPrimitiveType> {
    values: Vec<T::Native>,
    ends: OffsetBufferBuilder<i32>,
    nulls: NullBufferBuilder,
}

impl<T: ArrowPrimitiveType> Lists<T> {
    fn new() -> Self {
        Self {
            values: Vec::new(),
            ends: OffsetBufferBuilder::new(0),
            nulls: NullBufferBuilder::new(0),
        }
    }

    fn push(&mut self, values: impl ExactSizeIterator<Item = T::Native>) {
        self.ends.push_length(values.len());
        self.values.extend(values);
        self.nulls.append_non_null();
    }

    fn push_null(&mut self) {
        self.ends.push_length(0);
        self.nulls.append_null();
    }

    fn take(&mut self) -> ArrayRef {
        let Self {
            values,
            ends,
            mut nulls,
        } = std::mem::replace(self, Self::new());
        let values = PrimitiveArray::<T>::new(values.into(), None);
        let item = Arc::new(item(T::DATA_TYPE));
        Arc::new(ListArray::new(
            item,
            ends.finish(),
            Arc::new(values),
            nulls.finish(),
        ))
    }
}
