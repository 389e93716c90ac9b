//! Tasks that must not end. One that ends or panics would leave a leader that renews its lease over a stale cache: so it
//! ends the process instead, and the standby takes over.

use std::any::Any;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use thiserror::Error;
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinHandle;
use tracing::debug;

/// Starts tasks by name, and notices the first that ends.
#[derive(Clone, Debug)]
pub struct Supervisor {
    ends: mpsc::UnboundedSender<TaskEnded>,
    ended: Arc<Mutex<mpsc::UnboundedReceiver<TaskEnded>>>,
    /// The task that a test wants to panic.
    panics: Option<Arc<str>>,
}

/// A task that must not end has ended.
#[derive(Debug, Error)]
#[error("task {name:?} {how}")]
pub struct TaskEnded {
    name: String,
    how: String,
}

impl Supervisor {
    /// No tasks yet. The task of this name will panic when it starts, to show what comes of it.
    pub fn new(panics: Option<&str>) -> Self {
        let (ends, ended) = mpsc::unbounded_channel();
        Self { ends, ended: Arc::new(Mutex::new(ended)), panics: panics.map(Arc::from) }
    }

    /// Starts a task. Whoever stops the process may wait for its end.
    pub fn spawn(
        &self,
        name: impl Into<String>,
        task: impl Future<Output = ()> + Send + 'static,
    ) -> JoinHandle<()> {
        tokio::spawn(self.supervise(name.into(), task))
    }

    /// The same for a task that somebody else starts, and may drop.
    pub(crate) fn supervise<T>(&self, name: String, task: T) -> impl Future<Output = ()> + Send + use<T>
    where
        T: Future<Output = ()> + Send + 'static,
    {
        let ends = self.ends.clone();
        let panics = self.panics.as_deref() == Some(&*name);
        debug!("task {name:?} started");
        async move {
            let task = async {
                if panics {
                    std::panic::panic_any("asked to panic by a test");
                }
                task.await;
            };
            let how = match AssertUnwindSafe(task).catch_unwind().await {
                Ok(()) => "ended".to_owned(),
                Err(panic) => format!("panicked: {}", message(&*panic)),
            };
            // Whoever does not listen any more is stopping.
            let _ = ends.send(TaskEnded { name, how });
        }
    }

    /// Waits until a task ends.
    pub async fn ended(&self) -> TaskEnded {
        match self.ended.lock().await.recv().await {
            Some(ended) => ended,
            // Cannot happen: this supervisor holds a sender itself.
            None => std::future::pending().await,
        }
    }
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a message")
}

#[cfg(test)]
mod tests {
    use tokio::task::JoinSet;

    use super::Supervisor;

    #[tokio::test]
    async fn a_task_that_ends_or_panics_is_noticed_by_name() {
        let supervisor = Supervisor::new(None);
        supervisor.spawn("worker 1", std::future::pending());
        supervisor.spawn("watch", async {});
        assert_eq!(supervisor.ended().await.to_string(), r#"task "watch" ended"#);
        supervisor.spawn("events", async { panic!("no {}", "room") });
        assert_eq!(supervisor.ended().await.to_string(), r#"task "events" panicked: no room"#);
    }

    #[tokio::test]
    async fn a_task_that_somebody_else_starts_may_be_dropped_but_may_not_end() {
        let supervisor = Supervisor::new(None);
        let mut watches = JoinSet::new();
        watches.spawn(supervisor.supervise("dropped".to_owned(), std::future::pending()));
        watches.shutdown().await;
        watches.spawn(supervisor.supervise("watch".to_owned(), async { panic!("stale") }));
        assert_eq!(supervisor.ended().await.to_string(), r#"task "watch" panicked: stale"#);
    }

    #[tokio::test]
    async fn a_test_can_make_a_task_panic() {
        let supervisor = Supervisor::new(Some("watch"));
        supervisor.spawn("worker", std::future::pending());
        supervisor.spawn("watch", std::future::pending());
        assert_eq!(
            supervisor.ended().await.to_string(),
            r#"task "watch" panicked: asked to panic by a test"#
        );
    }
}
