// Writes scalars with TensorFlow's EventsWriter and prints what that took.
//
//	events_writer DIR write|clock|latency -n N

#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tensorflow/core/util/event.pb.h"
#include "tensorflow/core/util/events_writer.h"

namespace {

double Seconds(const timeval& t) { return t.tv_sec + t.tv_usec / 1e6; }

double CpuSeconds() {
  rusage u;
  getrusage(RUSAGE_SELF, &u);
  return Seconds(u.ru_utime) + Seconds(u.ru_stime);
}

int64_t Nanos(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return t.tv_sec * int64_t{1000000000} + t.tv_nsec;
}

void Write(tensorflow::EventsWriter& writer, double wall_time, int64_t i) {
  tensorflow::Event event;
  event.set_wall_time(wall_time);
  event.set_step(i);
  auto* value = event.mutable_summary()->add_value();
  value->set_tag("train/loss");
  value->set_simple_value(i / 2.0);
  writer.WriteEvent(event);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const std::string mode = argv[2];
  const int64_t n = std::atoll(argv[4]);
  tensorflow::EventsWriter writer(std::string(argv[1]) + "/events");
  if (!writer.Init().ok()) return 1;
  std::vector<int64_t> took(mode == "latency" ? n : 0);
  const int64_t begin = Nanos(CLOCK_MONOTONIC);
  const double cpu = CpuSeconds();
  for (int64_t i = 0; i < n; i++) {
    if (mode == "clock") {
      Write(writer, Nanos(CLOCK_REALTIME) / 1e9, i);
    } else if (mode == "write") {
      Write(writer, 1.7e9, i);
    } else {
      const int64_t call = Nanos(CLOCK_MONOTONIC);
      Write(writer, 1.7e9, i);
      took[i] = Nanos(CLOCK_MONOTONIC) - call;
    }
  }
  if (!writer.Close().ok()) return 1;
  const double seconds = (Nanos(CLOCK_MONOTONIC) - begin) / 1e9;
  const double spent = CpuSeconds() - cpu;
  std::sort(took.begin(), took.end());
  const int64_t p50 = took.empty() ? 0 : took[n / 2];
  const int64_t p99 = took.empty() ? 0 : took[n - n / 100 - 1];
  std::printf(
      "{\"work\":\"%lld scalars\",\"seconds\":%f,\"cpu_seconds\":%f,"
      "\"metrics\":{\"p50_ns\":%lld,\"p99_ns\":%lld}}\n",
      static_cast<long long>(n), seconds, spent, static_cast<long long>(p50),
      static_cast<long long>(p99));
}
