//! Signals that end the program.

use tokio::signal::unix::{SignalKind, signal};

/// Returns when somebody presses Ctrl-C or the system ends the program politely.
pub(crate) async fn interrupted() {
    let terminate = async {
        match signal(SignalKind::terminate()) {
            Ok(mut signals) => signals.recv().await,
            // Without a handler the signal ends the program by itself.
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate => {}
    }
}
