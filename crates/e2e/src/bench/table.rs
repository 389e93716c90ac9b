//! The figures as tables.

use std::fmt::Write as _;

use super::results::{Load, Record, Results, Who};

fn heading(load: Load) -> (&'static str, &'static str) {
    match load {
        Load::Burst => {
            ("A burst of backups", "n backups of 20 tenants at once, until the last is `Created`.")
        }
        Load::Ticks => (
            "Progress of one",
            "Velero reports progress of one of the n ten times; n - 1 others wait. Time until the tenth is shown; writes until \
             the controller is idle again.",
        ),
        Load::Drain => (
            "A drain",
            "Velero ends all n as fast as the API server takes it, until the last request shows it.",
        ),
        Load::Restart => (
            "A restart",
            "The controller is killed and started with n settled backups. Time until it is ready and has written whatever it \
             writes at a start.",
        ),
        Load::Delete => ("Deletion", "All n are deleted, until the last is gone."),
        Load::Turns => (
            "In turn",
            "n backups of 20 tenants at once, with the queue as it is by default: Velero is given a few at a time, and ends each \
             as fast as the API server takes it. Until the last request shows it. The bare client does all writes at once.",
        ),
        Load::Restores => {
            ("A storm of restores", "n restores of 20 backups at once, until the last is `Created`.")
        }
        Load::Locations => ("Locations", "500 locations with a Secret each, until Velero has the last."),
        Load::Unrecorded => (
            "People whom nobody records",
            "n backups of 20 people into the administrators' storage, with nacre's admission policies and without the record of \
             who asks. The best of three rounds, in turn with the next.",
        ),
        Load::Recorded => (
            "People whom the API server records",
            "The same with the record, and with the finalizer put on by the API server.",
        ),
        Load::RecordedOwn => (
            "People who back up into storage of their own",
            "The same into storage of the namespaces: nacre asks the API server what each of them may read.",
        ),
        Load::AtRest => {
            ("Idle locations", "A minute in which Velero notes its looks at 500 locations, each twice.")
        }
    }
}

/// A table for each load that was measured.
pub(super) fn tables(results: &Results) -> String {
    let mut text = String::new();
    for load in Load::ALL {
        let mut records: Vec<_> = results.records.iter().filter(|record| record.load == load).collect();
        if records.is_empty() {
            continue;
        }
        records.sort_by_key(|record| (record.n, record.who));
        let (title, words) = heading(load);
        let each = if load.is_per_object() { "writes each" } else { "writes" };
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "### {title}\n\n{words}\n\n| n | who | seconds | times bare | {each} | of which | conflicts | CPU s | peak MiB |\n\
             | ---: | --- | ---: | ---: | ---: | --- | ---: | ---: | ---: |\n"
        );
        for record in records {
            let bare = results.find(Who::BareClient, load, record.n);
            text.push_str(&row(record, bare));
        }
        text.push('\n');
    }
    text
}

fn row(record: &Record, bare: Option<&Record>) -> String {
    let Record { who, n, done, of, seconds, conflicts, cpu_seconds, .. } = record;
    let took = if record.is_done() {
        format!("{seconds:.2}")
    } else {
        format!("not done after {seconds:.0}: {done} of {of}")
    };
    let ratio = bare.filter(|_| record.is_done());
    let ratio = ratio.map(|bare| format!("{:.2}", seconds / bare.seconds)).unwrap_or_default();
    if *who == Who::BareClient {
        return format!("| {n} | {} | {took} | {ratio} | | | | | |\n", who.name());
    }
    // What one who was not done wrote for each would compare nothing.
    let writes =
        if record.is_done() { format!("{:.2}", record.writes_each()) } else { record.total().to_string() };
    format!(
        "| {n} | {} | {took} | {ratio} | {writes} | {} | {conflicts} | {cpu_seconds:.2} | {} |\n",
        who.name(),
        kinds(record),
        record.peak_rss >> 20,
    )
}

/// The kinds of writes, the most frequent first; what is rare is left out.
#[expect(clippy::cast_precision_loss, reason = "counts are small")]
fn kinds(record: &Record) -> String {
    let mut kinds: Vec<_> = record.writes.iter().collect();
    kinds.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let rare = record.total() / 200;
    let shown = kinds.into_iter().filter(|(_, count)| **count > rare).map(|(kind, count)| {
        if record.is_done() {
            format!("{kind} {:.2}", record.each(*count as f64))
        } else {
            format!("{kind} {count}")
        }
    });
    let reviews = record.each(record.reviews as f64);
    let reviews = (record.reviews > 0).then(|| format!("and access reviews {reviews:.2}"));
    shown.chain(reviews).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::verdict::tests::{record, results};
    use super::*;

    #[test]
    fn one_who_crawls_is_told_as_such() {
        let mut peer = record(Who::Peer, Load::Burst, 1000, 600.0, 2500);
        peer.done = 321;
        let bare = record(Who::BareClient, Load::Burst, 1000, 5.0, 0);
        let nacre = record(Who::Nacre, Load::Burst, 1000, 6.0, 3000);
        let text = tables(&results(vec![peer, nacre, bare]));
        assert!(text.contains("| 1000 | bare client | 5.00 | 1.00 |"), "{text}");
        assert!(text.contains("| 1000 | nacre | 6.00 | 1.20 | 3.00 | patch things 3.00 | 0 |"), "{text}");
        assert!(text.contains("not done after 600: 321 of 1000 |  | 2500 | patch things 2500 |"), "{text}");
    }
}
