//! Names of revision directories: `..2026_01_31_09_05_07.1234567890`.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The name of one revision directory, the target of `..data`: two dots, the time in UTC, a random number of
/// one to ten digits. It identifies a projection; a later revision does not always sort later.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RevisionName(String);

impl RevisionName {
    /// The name as it is on disk.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Recognises a name a writer of this layout gives, and no other.
    pub fn parse(name: &str) -> Option<Self> {
        let (time, random) = name.strip_prefix("..")?.split_once('.')?;
        let widths = [4, 2, 2, 2, 2, 2];
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let fields: Vec<&str> = time.split('_').collect();
        let is_time = fields.len() == widths.len()
            && fields
                .iter()
                .zip(widths)
                .all(|(field, width)| field.len() == width && digits(field));
        (is_time && digits(random) && random.len() <= 10).then(|| Self(name.to_owned()))
    }

    pub(crate) fn generate(names: &dyn RevisionNames) -> Self {
        let since_epoch = names
            .now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or(Duration::ZERO)
            .as_secs();
        let (days, seconds) = (since_epoch / 86_400, since_epoch % 86_400);
        let (year, month, day) = civil_from_days(days);
        let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
        let random = names.random();
        // Four digits of year, or the name is not recognised again; that clock is wrong anyway.
        let year = year.min(9_999);
        Self(format!(
            "..{year:04}_{month:02}_{day:02}_{hour:02}_{minute:02}_{second:02}.{random}"
        ))
    }
}

impl fmt::Display for RevisionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Where revision names come from.
pub trait RevisionNames: Send + Sync {
    /// The time, as the name shows it.
    fn now(&self) -> SystemTime;
    /// A number that tells revisions of one second apart.
    fn random(&self) -> u32;
}

/// The system's clock and random numbers.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemNames;

impl RevisionNames for SystemNames {
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }

    fn random(&self) -> u32 {
        // Uniqueness is proved by mkdir, not by chance: without random numbers the clock does.
        getrandom::u32().unwrap_or_else(|_| {
            SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap_or(Duration::ZERO)
                .subsec_nanos()
        })
    }
}

/// Year, month and day of a number of days since 1970-01-01, Gregorian.
///
/// Counts years from 1 March, so that the leap day is the last day of a year, in eras of 400 years.
fn civil_from_days(days_since_1970: u64) -> (u64, u64, u64) {
    let days = days_since_1970 + 719_468; // since 0000-03-01
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    (400 * era + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixed(u64, u32);

    impl RevisionNames for Fixed {
        fn now(&self) -> SystemTime {
            UNIX_EPOCH + Duration::from_secs(self.0)
        }

        fn random(&self) -> u32 {
            self.1
        }
    }

    #[test]
    fn a_name_is_the_time_in_utc_and_a_number() {
        for (seconds, random, name) in [
            (0, 0, "..1970_01_01_00_00_00.0"),
            (951_782_399, 7, "..2000_02_28_23_59_59.7"),
            (951_782_400, 7, "..2000_02_29_00_00_00.7"),
            (1_709_251_199, 7, "..2024_02_29_23_59_59.7"),
            (1_769_850_307, 1_234_567_890, "..2026_01_31_09_05_07.1234567890"),
            (4_107_542_400, u32::MAX, "..2100_03_01_00_00_00.4294967295"),
        ] {
            let made = RevisionName::generate(&Fixed(seconds, random));
            assert_eq!(made.as_str(), name);
            assert_eq!(RevisionName::parse(name), Some(made));
        }
    }

    #[test]
    fn only_names_of_revisions_are_recognised() {
        for name in [
            "",
            "..",
            "..data",
            "..data_tmp",
            "2026_01_31_09_05_07.1",
            "..2026_01_31_09_05_07",
            "..2026_01_31_09_05_07.",
            "..2026_01_31_09_05_07.x",
            "..2026_01_31_09_05_07.12345678901",
            "..2026_01_31_09_05.1",
            "..2026_1_31_09_05_07.1",
            "..2026_01_31_09_05_07.1/../../etc",
            "..+026_01_31_09_05_07.1",
        ] {
            assert_eq!(RevisionName::parse(name), None, "{name:?}");
        }
    }
}
