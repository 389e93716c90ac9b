//! The bursts, drains and silences of `main.rs` at full length.

#![expect(clippy::print_stdout, reason = "measured figures belong in the output of a test run")]

mod asked;
mod drain;
mod locations;
mod measure;
mod new_cluster;
mod raw;
mod ticks;
mod witness;

use std::time::Duration;

use anyhow::{Result, bail};
use api::{NonAdminBackup, NonAdminRestore, Phase};
use bed::Bed;
use e2e::{House, NACRE, Nacre};
use kube::Api;
use kube::api::PostParams;

use asked::{Asked, NAMESPACES, make_namespaces, namespace};
use measure::{ATTEMPTS, SLACK, against_a_bare_client};
use witness::Witness;

const MANY: usize = 1000;

/// Ticks, and a drain that takes a while.
async fn and_then<K: Asked + Send + 'static>(house: &House, nacre: &Nacre) -> Result<()> {
    let witness = Witness::of::<K>(&house.bed).await?;
    ticks::write_to_one::<K>(house, nacre).await?;
    drain::shows_at_once::<K>(house, MANY).await?;
    witness.testify(MANY)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_backups_from_the_first_to_the_last() -> Result<()> {
    let mut ratio = f64::INFINITY;
    for _ in 0..ATTEMPTS {
        let house = House::build().await?;
        house.bed.velero_stop()?;
        make_namespaces(&house.bed, "shop").await?;
        let nacre;
        (nacre, ratio) = against_a_bare_client::<NonAdminBackup>(&house, MANY).await?;
        if ratio < SLACK {
            return and_then::<NonAdminBackup>(&house, &nacre).await;
        }
    }
    bail!("{ratio:.2} times what a bare client needs, after {ATTEMPTS} attempts")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_restores_from_the_first_to_the_last() -> Result<()> {
    let mut ratio = f64::INFINITY;
    for _ in 0..ATTEMPTS {
        let house = House::build().await?;
        house.bed.velero_stop()?;
        make_namespaces(&house.bed, "shop").await?;
        let nacre = house.start_nacre().await?;
        finished_backups(&house.bed).await?;
        nacre.process.kill().await?;
        let nacre;
        (nacre, ratio) = against_a_bare_client::<NonAdminRestore>(&house, MANY).await?;
        if ratio < SLACK {
            return and_then::<NonAdminRestore>(&house, &nacre).await;
        }
    }
    bail!("{ratio:.2} times what a bare client needs, after {ATTEMPTS} attempts")
}

/// A finished backup in every namespace; Velero is played.
async fn finished_backups(bed: &Bed) -> Result<()> {
    let client = bed.client().await?;
    for number in 0..NAMESPACES {
        let requests = Api::<NonAdminBackup>::namespaced(client.clone(), &namespace("shop", number));
        let name = format!("b{number}");
        requests.create(&PostParams::default(), &NonAdminBackup::request(&name, number)?).await?;
        let created = |request: Option<&NonAdminBackup>| {
            let status = request?.status.clone()?;
            (status.phase == Some(Phase::Created)).then_some(status.velero_backup?.name?)
        };
        let within = Duration::from_secs(30);
        let velero =
            bed::wait_until("the backup to be created", within, requests.clone(), &name, created).await?;
        bed.velero_status("Backup", &velero, drain::done()).await?;
    }
    bed.audit().quiet(NACRE, Duration::from_secs(3)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn five_hundred_locations_at_rest_cost_next_to_nothing() -> Result<()> {
    let house = House::build().await?;
    house.bed.velero_stop()?;
    let nacre = house.start_nacre().await?;
    locations::at_rest(&house, &nacre, 500, Duration::from_mins(1)).await
}
