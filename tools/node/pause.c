/* The process that holds a pod's namespaces: it waits, and collects what other containers leave to it. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void end(int signal) { _exit(0); }
static void collect(int signal) { while (waitpid(-1, 0, WNOHANG) > 0) {} }

int main(void) {
    signal(SIGTERM, end);
    signal(SIGINT, end);
    signal(SIGCHLD, collect);
    for (;;) pause();
}
