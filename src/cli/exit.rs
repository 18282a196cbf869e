//! The exit statuses (SPEC section 5), and which is worse.

/// Everything succeeded with evidence, or every expectation holds.
pub const OK: u8 = 0;
/// The command line or a workload is invalid; nothing was run.
pub const INVALID: u8 = 2;
/// The test could not be made.
pub const UNTESTED: u8 = 5;
/// The program itself failed, or could not write a requested report.
pub const OWN_FAILURE: u8 = 70;

/// The table's order: the first row that applies.
const ORDER: [u8; 7] = [INVALID, UNTESTED, OWN_FAILURE, 3, 1, 4, OK];

/// The one that stands first in the table; an unknown one stands before all.
pub fn worse(one: u8, other: u8) -> u8 {
    let rank = |status: u8| ORDER.iter().position(|row| *row == status);
    if rank(other) < rank(one) { other } else { one }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_row_of_the_table_is_the_worst() {
        // As the specification has it, and not as it is written above.
        let table = [2, 5, 70, 3, 1, 4, 0];
        for (place, first) in table.iter().enumerate() {
            for later in &table[place..] {
                assert_eq!(worse(*first, *later), *first);
                assert_eq!(worse(*later, *first), *first);
            }
        }
    }
}
