//! Rows and columns as lines of text.

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table as Grid};

/// How wide a table may become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Width {
    /// As wide as its cells.
    Natural,
    /// At most so many columns; cells are wrapped.
    Within(usize),
}

/// A table without lines, with a header or none.
pub(super) struct Table(Grid);

impl Table {
    pub(super) fn new(width: Width) -> Self {
        let mut grid = Grid::new();
        grid.load_style(NOTHING);
        match width {
            Width::Natural => grid.set_content_arrangement(ContentArrangement::Disabled),
            Width::Within(columns) => grid
                .set_width(u16::try_from(columns).unwrap_or(u16::MAX))
                .set_content_arrangement(ContentArrangement::Dynamic),
        };
        Self(grid)
    }

    pub(super) fn header<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.0.set_header(cells.into_iter().map(Into::into));
    }

    pub(super) fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.0.add_row(cells.into_iter().map(Into::into));
    }

    /// Never wraps the cells of that column.
    pub(super) fn keep_whole(&mut self, place: usize) {
        if let Some(column) = self.0.column_mut(place) {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
    }

    /// Its lines, those columns right-aligned.
    pub(super) fn lines(mut self, numbers: impl IntoIterator<Item = usize>) -> Vec<String> {
        for place in numbers {
            if let Some(column) = self.0.column_mut(place) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        self.0.to_string().lines().map(|line| format!(" {line}")).collect()
    }
}
