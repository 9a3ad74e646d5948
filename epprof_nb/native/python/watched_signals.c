// Signals that end a child: they reach a thread even if the main thread calls no handler.
//
// Python notes a signal and calls its handler on the main thread, when that runs Python code again.
// The handler here comes before Python's. It posts semaphores, which, unlike the descriptor of
// signal.set_wakeup_fd, are not files: a program that closes all descriptors and opens files of its
// own never finds the numbers of signals in them.
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "python/convert.h"

#define LIMIT_S 2  // within which a thread must run Python code

static struct {
  pid_t process;
  sem_t python, native;  // for the thread that runs Python code, and the native one
  volatile sig_atomic_t number;
  volatile sig_atomic_t answered;
  struct sigaction originals[NSIG];
} watched;

static void on_signal(int number) {
  int error = errno;
  if (getpid() != watched.process) {  // C code has forked, and Python runs no hooks
    signal(number, SIG_DFL);
    raise(number);
  } else {
    watched.number = number;
    sem_post(&watched.python);
    sem_post(&watched.native);
    watched.originals[number].sa_handler(number);
  }
  errno = error;
}

static void wait_for(sem_t* posted) {
  while (sem_wait(posted) < 0 && errno == EINTR) {}
}

// A call that holds the GIL stops all Python code, including the code that saves the profile.
static void* end_without_python(void* Py_UNUSED(unused)) {
  do {
    wait_for(&watched.native);
    struct timespec left = {LIMIT_S, 0};
    while (nanosleep(&left, &left) < 0 && errno == EINTR) {}
  } while (watched.answered);
  int number = watched.number;
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, number);
  signal(number, SIG_DFL);
  pthread_sigmask(SIG_UNBLOCK, &only, NULL);
  raise(number);
  return NULL;
}

static int start(void) {
  watched.answered = 0;
  if (sem_init(&watched.python, 0, 0) < 0 || sem_init(&watched.native, 0, 0) < 0) return -1;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  int failed = pthread_create(&thread, NULL, end_without_python, NULL);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (failed) {
    errno = failed;
    return -1;
  }
  pthread_detach(thread);
  watched.process = getpid();
  return 0;
}

static PyObject* watch_signal(PyObject* Py_UNUSED(m), PyObject* arg) {
  long number = PyLong_AsLong(arg);
  if (number == -1 && PyErr_Occurred()) return NULL;
  struct sigaction action;
  if (number <= 0 || number >= NSIG || sigaction((int)number, NULL, &action) < 0 ||
      action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN ||
      action.sa_flags & SA_SIGINFO) {
    PyErr_SetString(PyExc_ValueError, "the signal has no handler of Python");
    return NULL;
  }
  if (watched.process != getpid() && start() < 0) return PyErr_SetFromErrno(PyExc_OSError);
  if (action.sa_handler != on_signal) {
    watched.originals[number] = action;
    action.sa_handler = on_signal;
    sigaction((int)number, &action, NULL);
  }
  Py_RETURN_NONE;
}

static PyObject* next_signal(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(unused)) {
  if (watched.process != getpid() && start() < 0) return PyErr_SetFromErrno(PyExc_OSError);
  Py_BEGIN_ALLOW_THREADS
  wait_for(&watched.python);
  Py_END_ALLOW_THREADS
  watched.answered = 1;
  return PyLong_FromLong(watched.number);
}

static PyMethodDef functions[] = {
    {"watch_signal", watch_signal, METH_O, NULL},
    {"next_signal", next_signal, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int watched_signals_add(PyObject* module) { return PyModule_AddFunctions(module, functions); }
