//! Whole outputs, compared with files in `tests/snapshots`; `UPDATE_SNAPSHOTS=1` rewrites them.

use std::path::Path;

/// Compares a text with the file of that name, and shows where they differ.
pub fn check(name: &str, text: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots").join(name);
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(&file, text).expect("snapshots can be written");
        return;
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    if kept == text {
        return;
    }
    let (mut kept_lines, mut lines) = (kept.lines(), text.lines());
    let mut difference = String::new();
    loop {
        match (kept_lines.next(), lines.next()) {
            (None, None) => break,
            (kept, now) if kept == now => {
                difference += &format!("  {}\n", now.unwrap_or_default());
            }
            (kept, now) => {
                difference.extend(kept.map(|line| format!("- {line}\n")));
                difference.extend(now.map(|line| format!("+ {line}\n")));
            }
        }
    }
    panic!("{} differs (- kept, + now):\n{difference}", file.display());
}
