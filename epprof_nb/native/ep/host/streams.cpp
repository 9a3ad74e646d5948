// Streams of the host device, which programs create outside of sessions: its work has ended when a
// call returns, so there is nothing to wait for.
#include "ep/host/streams.h"

#include "ort/status.h"

namespace epprof::ep {
namespace {

void release_notification(SyncNotificationImpl* self) { delete self; }
Status* activate(SyncNotificationImpl*) { return nullptr; }
Status* wait_on_device(SyncNotificationImpl*, SyncStream*) { return nullptr; }
Status* wait_on_host(SyncNotificationImpl*) { return nullptr; }

void release_stream(SyncStreamImpl* self) { delete self; }
void* get_handle(SyncStreamImpl*) { return nullptr; }
Status* flush(SyncStreamImpl*) { return nullptr; }
Status* on_run_end(SyncStreamImpl*) { return nullptr; }

Status* create_notification(SyncStreamImpl*, SyncNotificationImpl** made) {
  return as_status([&] {
    *made = new SyncNotificationImpl{kApiVersion, release_notification, activate, wait_on_device,
                                     wait_on_host};
  });
}

}  // namespace

SyncStreamImpl* make_host_stream() {
  return new SyncStreamImpl{kApiVersion, release_stream, get_handle, create_notification, flush,
                            on_run_end};
}

}  // namespace epprof::ep
