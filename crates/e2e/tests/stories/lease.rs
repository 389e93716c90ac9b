//! Leader election: one controller is active at a time, whatever happens; processes stand for pods.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bed::eventually;
use e2e::two_replicas::{BRISK, created, leads, only_holders_act, sender};
use e2e::{NACRE, TestCluster, VELERO, at_length};
use futures::{StreamExt, TryStreamExt, stream};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::rbac::v1::RoleBinding;
use kube::Api;
use kube::api::DeleteParams;

async fn test_cluster() -> Result<TestCluster> {
    // Nobody works off what is handed over, so nothing but the lease decides who writes.
    let test_cluster = TestCluster::build_with_idle_velero().await?;
    test_cluster.hand_over_at_once().await?;
    Ok(test_cluster)
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_installs_started_together_one_acts_and_the_other_says_who() -> Result<()> {
    let test_cluster = test_cluster().await?;
    test_cluster.install_second().await?;
    for round in 0..at_length(5, 50) {
        test_cluster.two_replicas(round).await.with_context(|| format!("round {round}"))?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_dies_is_followed_within_fifteen_seconds_and_one_that_ends_within_two() -> Result<()> {
    let test_cluster = test_cluster().await?;
    let tenant = test_cluster.tenant("shop", "ada").await?;
    let mark = test_cluster.bed.audit().mark().await?;
    let first = test_cluster.launch("first", VELERO, &test_cluster.account_of(VELERO).await?, &[])?;
    leads(&first, true).await?;
    let second = test_cluster.launch("second", VELERO, &test_cluster.account_of(VELERO).await?, &[])?;
    second.until_ready().await?;

    // kill -9, with the times that ship.
    tenant.back_up("before").await?;
    created(&tenant, "before").await?;
    first.process.kill().await?;
    let died = Instant::now();
    tenant.back_up("after").await?;
    created(&tenant, "after").await?;
    let took = died.elapsed();
    println!("kill -9: the standby acted after {took:.1?}");
    ensure!(took < Duration::from_secs(15), "{took:?}");
    ensure!(took > Duration::from_secs(5), "{took:?}: it did not wait for the lease to run out");

    // A rolling update, with requests coming in all the time.
    let third = test_cluster.launch("third", VELERO, &test_cluster.account_of(VELERO).await?, &[])?;
    third.until_ready().await?;
    let rolling = test_cluster.bed.audit().mark().await?;
    let pace = |number: usize| {
        let tenant = &tenant;
        async move { tenant.back_up(&format!("rolling-{number}")).await.map(|_| ()) }
    };
    let submit = async { stream::iter(0..200).map(pace).buffer_unordered(2).try_collect::<()>().await };
    let update = async {
        created(&tenant, "rolling-20").await?;
        second.process.terminate(Duration::from_mins(2)).await
    };
    let ((), code) = tokio::try_join!(submit, update)?;
    ensure!(code == Some(0), "it ended with {code:?}");
    created(&tenant, "rolling-199").await?;
    let seen = test_cluster.bed.audit().since(rolling).await?.by(NACRE);
    let writes = seen.writes();
    let old = sender(writes.as_slice().first().context("the old one wrote")?);
    let last =
        writes.as_slice().iter().filter(|write| sender(write) == old).map(|write| write.answered).max();
    let next =
        writes.as_slice().iter().filter(|write| sender(write) != old).map(|write| write.received).min();
    let (last, next) = (last.context("an end")?, next.context("a beginning")?);
    println!("rolling update: {:#} between the last write of the old and the first of the new", next - last);
    ensure!(next > last, "{next} is not after {last}");
    ensure!(next.duration_since(last).unsigned_abs() < Duration::from_secs(2), "from {last} to {next}");
    let released = seen.lease_writes();
    let released =
        released.as_slice().iter().filter(|lease| sender(lease) == old).map(|lease| lease.received).max();
    ensure!(released > Some(last), "the lease was handed back after everything else");
    only_holders_act(&test_cluster.bed.audit().since(mark).await?)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_stood_still_past_its_lease_starts_no_new_write() -> Result<()> {
    let test_cluster = test_cluster().await?;
    let tenant = test_cluster.tenant("shop", "ada").await?;
    let mark = test_cluster.bed.audit().mark().await?;
    let old = test_cluster.launch("old", VELERO, &test_cluster.account_of(VELERO).await?, &BRISK)?;
    leads(&old, true).await?;
    let new = test_cluster.launch("new", VELERO, &test_cluster.account_of(VELERO).await?, &BRISK)?;
    new.until_ready().await?;

    // Settled: the leader renews, and nobody writes anything else.
    tenant.back_up("first").await?;
    created(&tenant, "first").await?;
    let silent = async || test_cluster.bed.audit().quiet(NACRE, Duration::from_secs(1)).await;
    eventually("silence", Duration::from_mins(2), silent).await?;
    let settled = async || {
        let settled = test_cluster.bed.audit().mark().await?;
        let window = Duration::from_secs(5);
        test_cluster.bed.audit().quiet(NACRE, window).await?;
        let renewals = test_cluster.bed.audit().since(settled).await?.by(NACRE).lease_writes();
        // The machine may be busy for once.
        ensure!(
            (6..=13).contains(&renewals.len()),
            "{} renewals in {window:?}, one per 500ms",
            renewals.len()
        );
        anyhow::Ok(renewals)
    };
    let renewals = eventually("a renewal per 500ms", Duration::from_mins(2), settled).await?;
    let leader = renewals.as_slice().first().map(sender);
    ensure!(
        renewals.as_slice().iter().all(|lease| Some(sender(lease)) == leader),
        "a standby writes nothing"
    );

    // Stopped in the middle of its work.
    let ask = |number: usize| {
        let tenant = &tenant;
        async move { tenant.back_up(&format!("b{number}")).await.map(|_| ()) }
    };
    let submit = async { stream::iter(0..200).map(ask).buffer_unordered(16).try_collect::<()>().await };
    let stop = async {
        created(&tenant, "b20").await?;
        old.process.signal("STOP")
    };
    tokio::try_join!(submit, stop)?;
    leads(&new, true).await?;
    created(&tenant, "b199").await?;

    // Awake, with what it had begun and with something new to do.
    for number in 200..230 {
        ask(number).await?;
    }
    let awake = Timestamp::now();
    old.process.signal("CONT")?;
    let reported = async || {
        let details = old.details().await?;
        ensure!(details.contains("standby: velero/new_"), "{details}");
        anyhow::Ok(())
    };
    eventually("the old one to say who leads", Duration::from_mins(2), reported).await?;
    created(&tenant, "b229").await?;
    let seen = test_cluster.bed.audit().since(mark).await?.by(NACRE);
    let writes = seen.writes();
    let by_old = sender(writes.as_slice().first().context("the old one wrote")?);
    let late = writes.only(|write| sender(write) == by_old && write.received > awake);
    ensure!(late.is_empty(), "after it woke: {:#?}", late.tally());
    only_holders_act(&seen)?;

    // A role without leases, such as OADP's: the record is in a Secret, and it says why.
    for nacre in [&old, &new] {
        nacre.process.terminate(Duration::from_mins(2)).await?;
    }
    test_cluster.forget_lease().await?;
    let bindings = Api::<RoleBinding>::namespaced(test_cluster.bed.client().await?, "kube-system");
    bindings.delete("nacre", &DeleteParams::default()).await?;
    let user = "system:serviceaccount:velero:non-admin-controller";
    let gone = async || {
        let allowed =
            test_cluster.bed.allowed(user, "kube-system", "create", "coordination.k8s.io", "leases").await?;
        ensure!(!allowed, "it may still");
        anyhow::Ok(())
    };
    eventually("the right to be gone", Duration::from_mins(2), gone).await?;
    let bare = test_cluster.launch("bare", VELERO, &test_cluster.account_of(VELERO).await?, &[])?;
    leads(&bare, true).await?;
    let details = bare.details().await?;
    ensure!(
        details.contains("in Secret velero/nacre-lease") && details.contains("leases.coordination"),
        "{details}"
    );
    tenant.back_up("bare").await?;
    created(&tenant, "bare").await?;
    let leases = Api::<Lease>::namespaced(test_cluster.bed.client().await?, "kube-system");
    ensure!(leases.get_opt("nacre").await?.is_none(), "nobody made the lease");
    Ok(())
}
