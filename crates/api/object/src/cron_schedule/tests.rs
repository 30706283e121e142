use super::*;

/// `2012-07-09T14:45:00` in UTC, or with a zone: `2012-03-11T00:00:00-05[America/New_York]`.
fn at(text: &str) -> (Timestamp, TimeZone) {
    match text.parse::<jiff::Zoned>() {
        Ok(zoned) => (zoned.timestamp(), zoned.time_zone().clone()),
        Err(_) => (format!("{text}Z").parse().expect("a time"), TimeZone::UTC),
    }
}

fn parse(text: &str) -> CronSchedule {
    CronSchedule::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn the_next_time_is_upstreams() {
    // Of `spec_test.go` of robfig/cron 3.0.1, without seconds, and of `cronjob/utils_test.go` of Kubernetes 1.36.
    for (after, schedule, expected) in [
        ("2012-07-09T14:45:00", "0/15 * * * *", Some("2012-07-09T15:00:00")),
        ("2012-07-09T14:59:00", "0/15 * * * *", Some("2012-07-09T15:00:00")),
        ("2012-07-09T14:59:59", "0/15 * * * *", Some("2012-07-09T15:00:00")),
        (
            "2012-07-09T15:45:00",
            "20-35/15 * * * *",
            Some("2012-07-09T16:20:00"),
        ),
        ("2012-07-09T23:46:00", "*/15 * * * *", Some("2012-07-10T00:00:00")),
        (
            "2012-07-09T23:45:00",
            "20-35/15 * * * *",
            Some("2012-07-10T00:20:00"),
        ),
        (
            "2012-07-09T23:35:51",
            "20-35/15 1/2 * * *",
            Some("2012-07-10T01:20:00"),
        ),
        (
            "2012-07-09T23:35:51",
            "20-35/15 10-12 * * *",
            Some("2012-07-10T10:20:00"),
        ),
        (
            "2012-07-09T23:35:51",
            "20-35/15 1/2 */2 * *",
            Some("2012-07-11T01:20:00"),
        ),
        (
            "2012-07-09T23:35:51",
            "20-35/15 * 9-20 * *",
            Some("2012-07-10T00:20:00"),
        ),
        (
            "2012-07-09T23:35:51",
            "20-35/15 * 9-20 Jul *",
            Some("2012-07-10T00:20:00"),
        ),
        (
            "2012-07-09T23:35:00",
            "0 0 9 Apr-Oct ?",
            Some("2012-08-09T00:00:00"),
        ),
        (
            "2012-07-09T23:35:00",
            "0 0 */5 Apr,Aug,Oct Mon",
            Some("2012-08-01T00:00:00"),
        ),
        (
            "2012-07-09T23:35:00",
            "0 0 */5 Oct Mon",
            Some("2012-10-01T00:00:00"),
        ),
        (
            "2012-07-09T23:35:00",
            "0 0 * Feb Mon",
            Some("2013-02-04T00:00:00"),
        ),
        (
            "2012-07-09T23:35:00",
            "0 0 * Feb Mon/2",
            Some("2013-02-01T00:00:00"),
        ),
        ("2012-12-31T23:59:45", "* * * * *", Some("2013-01-01T00:00:00")),
        ("2012-07-09T23:35:00", "0 0 29 Feb ?", Some("2016-02-29T00:00:00")),
        ("2012-07-09T23:35:00", "0 0 30 Feb ?", None),
        ("2012-07-09T23:35:00", "0 0 31 Apr ?", None),
        ("2012-07-09T23:35:00", "59 23 31 2 *", None),
        ("2012-07-09T23:35:00", ", * * * *", None),
        ("2012-07-09T23:35:00", "0 , * * *", None),
        ("2012-07-09T23:35:00", "0 0 * , *", None),
        (
            "2012-07-15T08:29:00",
            "30 08 ? Jul Sun",
            Some("2012-07-15T08:30:00"),
        ),
        (
            "2012-07-15T08:29:00",
            "30 08 15 Jul ?",
            Some("2012-07-15T08:30:00"),
        ),
        ("2012-07-09T14:30:30.5", "@hourly", Some("2012-07-09T15:00:00")),
        ("2012-07-08T12:00:00", "@weekly", Some("2012-07-15T00:00:00")),
        ("2012-07-09T12:00:00", "@monthly", Some("2012-08-01T00:00:00")),
        ("2012-07-09T12:00:00", "@yearly", Some("2013-01-01T00:00:00")),
        ("2012-07-09T12:00:00", "@midnight", Some("2012-07-10T00:00:00")),
        (
            "2012-07-09T12:00:00.7",
            "@every 1h30m",
            Some("2012-07-09T13:30:00"),
        ),
        ("2012-07-09T12:00:00", "@every 10ms", Some("2012-07-09T12:00:01")),
        // Day of month and day of week: either of two, both with a star.
        (
            "2012-07-14T23:59:00",
            "* * 1,15 * Sun",
            Some("2012-07-15T00:00:00"),
        ),
        (
            "2012-06-14T23:59:00",
            "* * 1,15 * Sun",
            Some("2012-06-15T00:00:00"),
        ),
        ("2012-07-14T23:59:00", "* * * * Mon", Some("2012-07-16T00:00:00")),
        ("2012-07-08T23:59:00", "* * 1,15 * *", Some("2012-07-15T00:00:00")),
        // `*/10` and `*/2` are no stars.
        (
            "2012-07-14T23:59:00",
            "* * */10 * Sun",
            Some("2012-07-15T00:00:00"),
        ),
        (
            "2012-07-10T23:59:00",
            "* * */2 * Sun",
            Some("2012-07-11T00:00:00"),
        ),
        // Days of summer time.
        (
            "2012-03-11T00:00:00-05[America/New_York]",
            "30 2 11 Mar ?",
            Some("2013-03-11T02:30:00-04[America/New_York]"),
        ),
        (
            "2012-11-04T00:00:00-04[America/New_York]",
            "30 2 04 Nov ?",
            Some("2012-11-04T02:30:00-05[America/New_York]"),
        ),
        (
            "2012-11-04T01:45:00-04[America/New_York]",
            "30 1 04 Nov ?",
            Some("2012-11-04T01:30:00-05[America/New_York]"),
        ),
        (
            "2012-11-04T00:00:00-04[America/New_York]",
            "0 1 * * *",
            Some("2012-11-04T01:00:00-04[America/New_York]"),
        ),
        (
            "2012-11-04T01:00:00-05[America/New_York]",
            "0 1 * * *",
            Some("2012-11-05T01:00:00-05[America/New_York]"),
        ),
        (
            "2012-11-04T01:00:00-04[America/New_York]",
            "0 * * * *",
            Some("2012-11-04T01:00:00-05[America/New_York]"),
        ),
        (
            "2012-03-11T01:59:00-05[America/New_York]",
            "0 * * * ?",
            Some("2012-03-11T03:00:00-04[America/New_York]"),
        ),
        (
            "2012-03-10T02:30:00-05[America/New_York]",
            "30 2 * * *",
            Some("2012-03-12T02:30:00-04[America/New_York]"),
        ),
        (
            "2012-11-04T01:00:00-04[America/New_York]",
            "0 1 * * *",
            Some("2012-11-04T01:00:00-05[America/New_York]"),
        ),
        // Midnight does not exist on this day.
        (
            "2018-11-03T12:00:00-03[America/Sao_Paulo]",
            "0 9 * * *",
            Some("2018-11-04T09:00:00-02[America/Sao_Paulo]"),
        ),
        (
            "2018-11-03T12:00:00-03[America/Sao_Paulo]",
            "0 9 5 * *",
            Some("2018-11-05T09:00:00-02[America/Sao_Paulo]"),
        ),
        (
            "2018-11-03T12:00:00-03[America/Sao_Paulo]",
            "0 0 * * *",
            Some("2018-11-05T00:00:00-02[America/Sao_Paulo]"),
        ),
    ] {
        let (after_time, zone) = at(after);
        let found = parse(schedule).next(after_time, &zone);
        assert_eq!(found, expected.map(|text| at(text).0), "{schedule} after {after}");
    }
}

#[test]
fn a_zone_in_the_schedule_wins() {
    let (after, _) = at("2026-07-01T12:00:00");
    for (schedule, expected) in [
        ("0 3 * * *", "2026-07-02T07:00:00"),
        ("TZ=Asia/Tokyo 0 3 * * *", "2026-07-01T18:00:00"),
        ("CRON_TZ=UTC  @midnight", "2026-07-02T00:00:00"),
        ("TZ= 0 3 * * *", "2026-07-02T03:00:00"),
    ] {
        let new_york = time_zone("America/New_York").expect("known");
        assert_eq!(
            parse(schedule).next(after, &new_york),
            Some(at(expected).0),
            "{schedule}"
        );
        assert_eq!(
            parse(schedule).names_its_zone(),
            schedule.contains("TZ"),
            "{schedule}"
        );
    }
}

#[test]
fn what_is_no_schedule_is_refused_in_upstreams_words() {
    for (text, message) in [
        ("", "empty spec string"),
        ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
        ("0 5 * * * *", "expected exactly 5 fields, found 6: [0 5 * * * *]"),
        (
            "5 j * * *",
            "failed to parse int from j: strconv.Atoi: parsing \"j\": invalid syntax",
        ),
        (
            "99999999999999999999 * * * *",
            "failed to parse int from 99999999999999999999: strconv.Atoi: parsing \"99999999999999999999\": value out of range",
        ),
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("* * * * 7", "end of range (7) above maximum (6): 7"),
        (
            "6-5 * * * *",
            "beginning of range (6) beyond end of range (5): 6-5",
        ),
        ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
        ("1/2/3 * * * *", "too many slashes: 1/2/3"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("*/-12 * * * *", "negative number (-12) not allowed: -12"),
        ("@unrecognized", "unrecognized descriptor: @unrecognized"),
        ("@Daily", "unrecognized descriptor: @Daily"),
        (
            "@every xyz",
            "failed to parse duration @every xyz: time: invalid duration \"xyz\"",
        ),
        (
            "@every 5",
            "failed to parse duration @every 5: time: missing unit in duration \"5\"",
        ),
        (
            "@every 5d",
            "failed to parse duration @every 5d: time: unknown unit \"d\" in duration \"5d\"",
        ),
        (
            "TZ=Mars/Crater * * * * *",
            "provided bad location Mars/Crater: unknown time zone Mars/Crater",
        ),
        (
            "TZ=UTC",
            "invalid schedule format: runtime error: slice bounds out of range [:-1]",
        ),
    ] {
        let error = CronSchedule::parse(text).expect_err(text);
        assert_eq!(error.to_string(), message, "{text}");
    }
}

#[test]
fn odd_but_valid_schedules_are_read() {
    for text in [
        "*/100 * * * *",
        "1,,2 * * * *",
        "*-5 * * * *",
        "?/3 * * * *",
        "0 0 ? JAN-mar sUn",
        "@every -5m",
        "@every 1.5h0.5s",
    ] {
        parse(text);
    }
}

#[test]
fn time_zones_are_found_by_their_exact_name() {
    for (name, known) in [
        ("UTC", true),
        ("", true),
        ("Europe/Rome", true),
        ("US/Pacific", true),
        ("Etc/GMT+5", true),
        ("europe/rome", false),
        ("Local", false),
        ("../../etc/passwd", false),
        ("/etc/localtime", false),
        ("Moon/Base", false),
    ] {
        assert_eq!(time_zone(name).is_ok(), known, "{name}");
    }
}
