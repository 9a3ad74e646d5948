#include "ep/cuda/streams.h"

#include <memory>

#include "ep/cuda/arena.h"
#include "ep/interpreter.h"
#include "ort/status.h"

namespace epprof::ep {
namespace {

struct Stream : SyncStreamImpl {
  int device;
  CudaStream handle;
  bool is_external;
};

struct Notification : SyncNotificationImpl {
  int device;
  CudaStream stream;
  CudaEvent event;
};

const Stream& of(const SyncStreamImpl* self) { return *static_cast<const Stream*>(self); }
const Notification& of(const SyncNotificationImpl* self) {
  return *static_cast<const Notification*>(self);
}

// Nothing may wait for a stream that is being captured, because its work has not been launched.
void synchronize(const Stream& stream) {
  CurrentDevice current(stream.device);
  if (is_capturing(stream.handle)) return;
  check_cuda("cuStreamSynchronize", cuda.StreamSynchronize(stream.handle));
}

void release_notification(SyncNotificationImpl* self) {
  std::unique_ptr<Notification> notification(static_cast<Notification*>(self));
  consume_status(as_status([&] {
    CurrentDevice current(notification->device);
    cuda.EventDestroy(notification->event);
  }));
}

// In a capture there is nothing to wait for, because results in host memory do not depend on the
// device.
Status* activate(SyncNotificationImpl* self) {
  return as_status([&] {
    CurrentDevice current(of(self).device);
    if (is_capturing(of(self).stream)) return;
    check_cuda("cuEventRecord", cuda.EventRecord(of(self).event, of(self).stream));
  });
}

Status* wait_on_device(SyncNotificationImpl* self, SyncStream* consumer) {
  return as_status([&] {
    // The consumer's stream may belong to the CUDA provider. Then only its handle is known.
    auto handle = static_cast<CudaStream>(rt.stream_handle(consumer));
    CurrentDevice current(of(self).device);
    check_cuda("cuStreamWaitEvent", cuda.StreamWaitEvent(handle, of(self).event, 0));
  });
}

Status* wait_on_host(SyncNotificationImpl* self) {
  return as_status([&] {
    CurrentDevice current(of(self).device);
    check_cuda("cuEventSynchronize", cuda.EventSynchronize(of(self).event));
  });
}

void* get_handle(SyncStreamImpl* self) { return of(self).handle; }

Status* create_notification(SyncStreamImpl* self, SyncNotificationImpl** made) {
  return as_status([&] {
    CurrentDevice current(of(self).device);
    auto notification = std::make_unique<Notification>();
    static_cast<SyncNotificationImpl&>(*notification) = {
        kApiVersion, release_notification, activate, wait_on_device, wait_on_host};
    notification->device = of(self).device;
    notification->stream = of(self).handle;
    check_cuda("cuEventCreate", cuda.EventCreate(&notification->event, kDisableTiming));
    *made = notification.release();
  });
}

Status* flush(SyncStreamImpl* self) {
  return as_status([&] {
    synchronize(of(self));
    arena_of(of(self).device).flushed_stream(of(self).handle);
  });
}

Status* on_run_end(SyncStreamImpl*) { return nullptr; }

void release_stream(SyncStreamImpl* self) {
  std::unique_ptr<Stream> stream(static_cast<Stream*>(self));
  consume_status(as_status([&] {
    // A failed run leaves pending work, which may need Python's lock while Python releases the
    // session.
    without_gil(
        [](void* of) { consume_status(as_status([&] { synchronize(*static_cast<Stream*>(of)); })); },
        stream.get());
    arena_of(stream->device).forget_stream(stream->handle);
    if (stream->is_external) return;
    CurrentDevice current(stream->device);
    cuda.StreamDestroy(stream->handle);
  }));
}

}  // namespace

SyncStreamImpl* make_cuda_stream(int device, CudaStream external) {
  CurrentDevice current(device);
  auto stream = std::make_unique<Stream>();
  static_cast<SyncStreamImpl&>(*stream) = {kApiVersion, release_stream, get_handle,
                                           create_notification, flush, on_run_end};
  stream->device = device;
  stream->handle = external;
  stream->is_external = external;
  if (!external) {
    check_cuda("cuStreamCreate", cuda.StreamCreate(&stream->handle, kNonBlocking));
  }
  arena_of(device).add_stream(stream->handle);
  return stream.release();
}

}  // namespace epprof::ep
