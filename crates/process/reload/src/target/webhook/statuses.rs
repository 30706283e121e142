//! Which answers count as taken.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use hyper::StatusCode;

/// Statuses and ranges of them: `200`, `200-204`, `2xx`, joined by commas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Statuses(Vec<RangeInclusive<u16>>);

impl Statuses {
    /// 2xx.
    pub(crate) fn success() -> Self {
        Self(vec![200..=299])
    }

    pub(crate) fn contain(&self, status: StatusCode) -> bool {
        self.0.iter().any(|range| range.contains(&status.as_u16()))
    }
}

impl FromStr for Statuses {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.split(',')
            .map(|part| {
                range(part.trim()).ok_or_else(|| format!("{part:?} is no status such as 200, 200-204 or 2xx"))
            })
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

fn range(part: &str) -> Option<RangeInclusive<u16>> {
    if let Some(class) = part.strip_suffix("xx") {
        let class: u16 = class.parse().ok()?;
        return (1..=5).contains(&class).then(|| class * 100..=class * 100 + 99);
    }
    let (from, to) = part.split_once('-').unwrap_or((part, part));
    let range = from.parse().ok()?..=to.parse().ok()?;
    (*range.start() >= 100 && *range.end() < 600 && !range.is_empty()).then_some(range)
}

impl fmt::Display for Statuses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, range) in self.0.iter().enumerate() {
            let separator = if at > 0 { " or " } else { "" };
            match (range.start(), range.end()) {
                (from, to) if from == to => write!(f, "{separator}{from}")?,
                (from, to) if from % 100 == 0 && *to == from + 99 => {
                    write!(f, "{separator}{}xx", from / 100)?
                }
                (from, to) => write!(f, "{separator}{from}-{to}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_numbers_ranges_and_classes() {
        for (text, shown, yes, no) in [
            ("2xx", "2xx", 204, 300),
            ("200", "200", 200, 201),
            ("200-204, 404", "200-204 or 404", 404, 205),
            ("2xx,3xx", "2xx or 3xx", 302, 404),
        ] {
            let statuses: Statuses = text.parse().unwrap();
            assert_eq!(statuses.to_string(), shown);
            assert!(statuses.contain(StatusCode::from_u16(yes).unwrap()), "{text}");
            assert!(!statuses.contain(StatusCode::from_u16(no).unwrap()), "{text}");
        }
        for bad in ["", "ok", "99", "600", "204-200", "6xx", "xx", "200;201"] {
            assert!(bad.parse::<Statuses>().is_err(), "{bad:?}");
        }
    }
}
