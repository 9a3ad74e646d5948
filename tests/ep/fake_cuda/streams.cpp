// Streams and events.
#include "state.h"

using namespace fake;

extern "C" {

int cuStreamCreate(Stream** stream, unsigned) {
  std::lock_guard lock(mutex);
  if (int failed = enter("cuStreamCreate")) return failed;
  if (current.empty()) return kInvalidContext;
  *stream = new Stream;
  (*stream)->context = current.back();
  current.back()->streams.insert(*stream);
  return 0;
}
int cuStreamDestroy_v2(Stream* given) {
  Stream* stream = nullptr;
  {
    std::lock_guard lock(mutex);
    if (int failed = usable("cuStreamDestroy", given, &stream)) return failed;
    if (stream->capture) misuse("cuStreamDestroy of a stream that is being captured");
    stream->context->streams.erase(stream);
    stream->closing = true;
    changed.notify_all();
  }
  stream->thread.join();
  delete stream;
  return 0;
}
int cuStreamSynchronize(Stream* given) {
  std::unique_lock lock(mutex);
  Stream* stream = nullptr;
  if (int failed = usable("cuStreamSynchronize", given, &stream)) return failed;
  if (stream->capturing) {
    misuse("cuStreamSynchronize of a stream that is being captured");
    return kCaptureUnsupported;
  }
  if (stream->capture) {
    stream->capture->invalid = true;
    return kCaptureUnsupported;
  }
  changed.wait(lock, [&] { return !stream->pending; });
  return sticky;
}
int cuStreamQuery(Stream* given) {
  std::lock_guard lock(mutex);
  Stream* stream = nullptr;
  if (int failed = usable("cuStreamQuery", given, &stream)) return failed;
  if (stream->capturing) {
    misuse("cuStreamQuery of a stream that is being captured");
    return kCaptureUnsupported;
  }
  if (stream->capture) {
    stream->capture->invalid = true;
    return kCaptureUnsupported;
  }
  return stream->pending ? kNotReady : 0;
}
int cuStreamWaitEvent(Stream* given, Event* event, unsigned) {
  std::lock_guard lock(mutex);
  Stream* stream = nullptr;
  if (int failed = usable("cuStreamWaitEvent", given, &stream)) return failed;
  if (!events.count(event)) {
    misuse("cuStreamWaitEvent of an event that was destroyed");
    return kInvalidHandle;
  }
  if (event->capture) {
    if (stream->capture && stream->capture != event->capture) return kCapturedEvent;
    if (stream == event->capture->origin) {
      auto joined = event->capture->joined.find(event->stream);
      if (joined != event->capture->joined.end()) joined->second = true;
    } else if (!stream->capture) {
      stream->capture = event->capture;
      event->capture->joined[stream] = false;
    }
    return 0;
  }
  if (stream->capturing || event->captured || !event->recorded) return 0;
  stream->add([=] {
    std::unique_lock waiting(mutex);
    changed.wait(waiting, [&] { return !events.count(event) || event->done; });
  });
  return 0;
}
int cuEventCreate(Event** event, unsigned) {
  std::lock_guard lock(mutex);
  if (int failed = enter("cuEventCreate")) return failed;
  if (current.empty()) return kInvalidContext;
  *event = new Event{current.back()};
  events.insert(*event);
  return 0;
}
int cuEventDestroy_v2(Event* event) {
  std::lock_guard lock(mutex);
  if (int failed = enter("cuEventDestroy")) return failed;
  if (!events.erase(event)) {
    misuse("cuEventDestroy of an event that was destroyed");
    return kInvalidHandle;
  }
  changed.notify_all();  // kept in memory: a stream may still have to set it
  return 0;
}
int cuEventRecord(Event* event, Stream* given) {
  std::lock_guard lock(mutex);
  Stream* stream = nullptr;
  if (int failed = usable("cuEventRecord", given, &stream)) return failed;
  if (!events.count(event)) return kInvalidHandle;
  if (event->context != stream->context) {
    misuse("cuEventRecord of an event of another context than its stream");
    return kInvalidHandle;
  }
  event->captured = stream->capturing;
  event->capture = stream->capture;
  event->stream = stream;
  if (stream->capturing || stream->capture) return 0;
  event->recorded = true;
  event->done = false;
  stream->add([=] {
    std::lock_guard finished(mutex);
    event->done = true;
    changed.notify_all();
  });
  return 0;
}
int cuEventQuery(Event* event) {
  std::lock_guard lock(mutex);
  if (int failed = unsafe("cuEventQuery")) return failed;
  if (!events.count(event)) return kInvalidHandle;
  if (event->capture) {
    event->capture->invalid = true;
    return kCapturedEvent;
  }
  if (event->captured) misuse("cuEventQuery of an event of a capture");
  return event->done ? 0 : kNotReady;
}
int cuEventSynchronize(Event* event) {
  std::unique_lock lock(mutex);
  if (int failed = enter("cuEventSynchronize")) return failed;
  if (!events.count(event)) return kInvalidHandle;
  if (event->capture) {
    event->capture->invalid = true;
    return kCapturedEvent;
  }
  if (event->captured) misuse("cuEventSynchronize of an event of a capture");
  changed.wait(lock, [&] { return event->done; });
  return sticky;
}

}  // extern "C"
