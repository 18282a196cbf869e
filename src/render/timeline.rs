//! Draws the tracks of one delivery against time, in plain letters.
//!
//! Promises lines of at most the given width, and at most 48 tracks. The scale is even except where
//! it says so: a long stretch in which nothing began or ended is shortened when that tells more
//! instants apart, and is drawn as `~`. Words nothing: see [`tracks`](crate::report::tracks).

use super::page::printable;
use crate::report::tracks::{End, Role, Track, Tracks};
use crate::report::words::span;

/// So many tracks are drawn at most, unless more of them did not go well.
const MOST_TRACKS: usize = 24;
/// So many are drawn at most in any case.
const MOST_TRACKS_EVER: usize = 48;
/// What stands for time after the last instant, when something is still open then.
const OPEN_COLUMNS: usize = 3;
/// A shortened stretch keeps at least one part in so many of the whole scale.
const SMALLEST_SHARE: u64 = 8;
/// Stretches of so many microseconds are never shortened: differences below are mostly noise.
const NOISE_US: u64 = 1_000;

/// What the letters of a drawing mean.
const LETTERS: [(char, &str); 10] = [
    ('[', "began"),
    (']', "ended"),
    ('x', "dropped"),
    ('*', "shown to have ended"),
    ('#', "overdue"),
    ('>', "no end seen"),
    ('&', "not awaited"),
    (':', "P"),
    ('|', "E"),
    ('~', "shortened stretch"),
];

/// What those letters mean that stand in a drawing, in lines of at most `width`.
pub fn legend(drawings: &[String], width: usize) -> Vec<String> {
    let is_used = |letter| drawings.iter().any(|line| line.contains(letter));
    let used = LETTERS.iter().filter(|(letter, _)| is_used(*letter));
    let mut lines = vec![String::from("  times are since admission;")];
    for (place, (letter, meaning)) in used.enumerate() {
        let comma = if place == 0 { "" } else { "," };
        // A letter and its meaning stay together.
        let item = format!("{comma} {letter} {meaning}");
        let line = lines.last_mut().expect("there is always a last line");
        if line.chars().count() + item.chars().count() < width {
            line.push_str(&item);
        } else {
            line.push_str(comma);
            lines.push(format!("  {letter} {meaning}"));
        }
    }
    lines
}

/// The drawing, line by line, without the space at the ends of lines.
pub fn draw(tracks: &Tracks, width: usize) -> Vec<String> {
    let (drawn, left_out) = choose(&tracks.tracks);
    let names: Vec<String> = drawn.iter().map(|track| name(track)).collect();
    let notes: Vec<String> = drawn.iter().map(|track| printable(&track.note)).collect();
    let name_width = widest(&names).min(width * 7 / 24);
    let note_width = widest(&notes).min(width / 4 + 1);
    let columns = width - name_width - note_width - 6;
    let scale = Scale::new(tracks, &drawn, columns);

    let margin = " ".repeat(name_width + 3);
    let mut lines: Vec<String> =
        scale.header(tracks).iter().map(|line| format!("{margin}{line}")).collect();
    for ((track, name), note) in drawn.iter().zip(&names).zip(&notes) {
        let name = cut(name, name_width);
        let note = cut(note, note_width);
        lines.push(format!("  {name:<name_width$} {}  {note}", scale.row(tracks, track)));
    }
    if !left_out.is_empty() {
        let amount = left_out.len();
        let how = match left_out.iter().filter(|track| !track.is_plain).count() {
            0 => String::from("which went well"),
            telling => format!("{telling} of which did not go well"),
        };
        lines.push(format!("  ... {amount} more, {how}"));
    }
    for line in &mut lines {
        line.truncate(line.trim_end().len());
    }
    lines
}

/// Which tracks are drawn, and which are not: of the steps, those that went well are left out first.
fn choose(tracks: &[Track]) -> (Vec<&Track>, Vec<&Track>) {
    // What stands inside a step names no step itself: the step stays with it.
    let mut is_telling: Vec<bool> = tracks.iter().map(|track| !track.is_plain).collect();
    let mut depth_needed = 0;
    for (place, track) in tracks.iter().enumerate().rev() {
        is_telling[place] |= track.depth < depth_needed;
        if is_telling[place] {
            depth_needed = track.depth;
        }
    }
    let class = |place: usize| match (tracks[place].depth, is_telling[place]) {
        (0, _) => 0,
        (_, true) => 1,
        (_, false) => 2,
    };
    let mut places: Vec<usize> = (0..tracks.len()).collect();
    places.sort_by_key(|place| class(*place));
    let plain = places.iter().position(|place| class(*place) == 2).unwrap_or(places.len());
    let drawn = places.len().min(plain.clamp(MOST_TRACKS, MOST_TRACKS_EVER));
    let in_order = |places: &[usize]| {
        let mut places = places.to_vec();
        places.sort_unstable();
        places.into_iter().map(|place| &tracks[place]).collect()
    };
    (in_order(&places[..drawn]), in_order(&places[drawn..]))
}

fn name(track: &Track) -> String {
    let mark = if track.role == Role::Detached { "& " } else { "" };
    format!("{:indent$}{mark}{}", "", printable(&track.name), indent = 2 * track.depth)
}

fn widest(texts: &[String]) -> usize {
    texts.iter().map(|text| text.chars().count()).max().unwrap_or(0)
}

/// The text, or its beginning and a mark that there is more.
fn cut(text: &str, room: usize) -> String {
    if text.chars().count() <= room {
        return text.into();
    }
    text.chars().take(room.saturating_sub(2)).chain("..".chars()).collect()
}

/// From instants to columns.
///
/// Between two neighbouring instants time is even. A stretch longer than `longest` is drawn as if
/// it were just that long.
struct Scale {
    columns: usize,
    /// The columns up to the last instant.
    even_columns: usize,
    instants: Vec<u64>,
    longest: u64,
}

impl Scale {
    fn new(tracks: &Tracks, drawn: &[&Track], columns: usize) -> Self {
        let mut instants = vec![tracks.admitted_us, tracks.end_us];
        instants.extend(tracks.normal_cutoff_us);
        let mut has_open = false;
        for track in drawn {
            instants.extend(track.began_us);
            instants.extend(track.end.at_us());
            // A due instant of its own matters only once it has passed.
            let is_overdue = track.end.at_us().is_none_or(|at| at > track.due_us);
            instants.extend(Some(track.due_us).filter(|due| is_overdue && *due != u64::MAX));
            has_open |= track.end == End::Open;
        }
        instants.retain(|at| *at >= tracks.admitted_us);
        instants.sort_unstable();
        instants.dedup();
        let even_columns = columns - if has_open { OPEN_COLUMNS } else { 0 };
        let mut scale = Self { columns, even_columns, instants, longest: u64::MAX };
        scale.shorten();
        scale
    }

    /// Takes the most even scale that keeps almost as many instants apart as any would.
    fn shorten(&mut self) {
        let whole = self.whole();
        let mut scales = vec![(self.told_apart(), u64::MAX)];
        let mut longest = whole / 2;
        loop {
            self.longest = longest;
            if longest < NOISE_US || longest < self.whole() / SMALLEST_SHARE {
                break;
            }
            scales.push((self.told_apart(), longest));
            longest /= 2;
        }
        let most = scales.iter().map(|(apart, _)| *apart).max().unwrap_or(0);
        let enough = scales.iter().find(|(apart, _)| apart * 4 >= most * 3);
        self.longest = enough.map_or(u64::MAX, |(_, longest)| *longest);
    }

    fn stretches(&self) -> impl Iterator<Item = (u64, u64)> {
        self.instants.windows(2).map(|pair| (pair[0], pair[1]))
    }

    /// The length of the scale, in microseconds of its even parts.
    fn whole(&self) -> u64 {
        self.stretches().map(|(from, until)| (until - from).min(self.longest)).sum()
    }

    fn told_apart(&self) -> usize {
        let mut columns: Vec<usize> = self.instants.iter().map(|at| self.column(*at)).collect();
        columns.dedup();
        columns.len()
    }

    fn column(&self, at: u64) -> usize {
        let mut place = 0;
        for (from, until) in self.stretches() {
            if at <= from {
                break;
            }
            let length = u128::from((until - from).min(self.longest));
            let part = u128::from(at.min(until) - from);
            place += length * part / u128::from(until - from);
        }
        let whole = u128::from(self.whole().max(1));
        usize::try_from(place * (self.even_columns as u128 - 1) / whole)
            .map_or(self.columns - 1, |column| column.min(self.columns - 1))
    }

    fn is_shortened(&self, from: u64, until: u64) -> bool {
        until - from > self.longest
    }

    /// Labels above, and the scale itself.
    fn header(&self, tracks: &Tracks) -> Vec<String> {
        let since = |at: u64| span(at.saturating_sub(tracks.admitted_us));
        // A root that is over before the admission leaves nothing of them to draw.
        let rules = [("E", Some(tracks.end_us)), ("P", tracks.normal_cutoff_us)];
        let rules = rules.into_iter().filter_map(|(rule, at)| Some((rule, at?)));
        let mut labels: Vec<(u64, String)> = rules
            .filter(|(_, at)| *at >= tracks.admitted_us)
            .map(|(rule, at)| (at, format!("{rule} {}", since(at))))
            .collect();
        labels.push((tracks.admitted_us, String::from("0")));
        labels.extend(self.instants.last().map(|at| (*at, since(*at))));
        // Whoever sees that a stretch was shortened wants to know from where to where.
        for (from, until) in
            self.stretches().filter(|(from, until)| self.is_shortened(*from, *until))
        {
            labels.push((until, since(until)));
            labels.push((from, since(from)));
        }
        let mut axis = vec!['-'; self.columns];
        for (from, until) in
            self.stretches().filter(|(from, until)| self.is_shortened(*from, *until))
        {
            axis[self.column(from)..self.column(until)].fill('~');
        }
        if self.even_columns < self.columns {
            axis[self.even_columns..].fill(' ');
        }
        let mut rows = [vec![' '; self.columns], vec![' '; self.columns]];
        for (at, label) in labels {
            let column = self.column(at);
            if axis[column] == '+' {
                continue;
            }
            let letters: Vec<char> = label.chars().collect();
            // To the right of its instant, or to the left of it at the edge.
            let from = if column + letters.len() <= self.columns {
                column
            } else {
                (column + 1).saturating_sub(letters.len())
            };
            let until = from + letters.len();
            let is_free = |row: &&mut Vec<char>| {
                let around = from.saturating_sub(1)..(until + 1).min(self.columns);
                row[around].iter().all(|letter| *letter == ' ')
            };
            if let Some(row) = rows.iter_mut().rev().find(is_free) {
                row[from..until].copy_from_slice(&letters);
                axis[column] = '+';
            }
        }
        let [upper, lower] = rows;
        let mut lines = vec![lower, axis];
        if upper.iter().any(|letter| *letter != ' ') {
            lines.insert(0, upper);
        }
        lines.into_iter().map(String::from_iter).collect()
    }

    fn row(&self, tracks: &Tracks, track: &Track) -> String {
        let mut cells = vec![' '; self.columns];
        let rules = [
            tracks.normal_cutoff_us.map(|at| (self.column(at), ':')),
            Some((self.column(tracks.end_us), '|')),
        ];
        for (column, rule) in rules.into_iter().flatten() {
            cells[column] = rule;
        }
        let due = (track.due_us != u64::MAX).then(|| self.column(track.due_us));
        let (until, mark) = match track.end {
            End::Ended(at) => (self.column(at), ']'),
            End::Cut(at) => (self.column(at), 'x'),
            End::Proven(at) => (self.column(at), '*'),
            End::Open => (self.columns - 1, '>'),
        };
        let from = match (track.began_us, track.end) {
            (Some(began), _) => self.column(began),
            // It never began: there is only what is overdue of it.
            (None, End::Open) => due.map_or(until, |due| due + 1),
            (None, _) => until,
        };
        let body = match track.role {
            Role::Grant | Role::Signal | Role::Owed => '.',
            Role::Work | Role::Detached => '=',
        };
        let across = cells.iter_mut().enumerate().take(until).skip(from);
        for (column, cell) in across {
            let is_overdue = due.is_some_and(|due| column > due);
            // The rules stay to be seen through what goes on across them.
            if *cell == ' ' || column == from {
                *cell = if is_overdue { '#' } else { body };
            }
        }
        if track.began_us.is_some() {
            cells[from] = if track.role == Role::Signal { '!' } else { '[' };
        }
        if from < until || track.role != Role::Signal {
            cells[until] = mark;
        }
        cells.into_iter().collect()
    }
}
