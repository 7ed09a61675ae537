import { setFlagsFromString } from "node:v8";

/**
 * Makes V8 collect when its heap has grown by half; to be called first. By default V8 lets a small heap grow to several
 * times its live size, so a burst of requests leaves tens of MB behind (S-17). The unit bounds the young generation,
 * which only the start of a process can.
 */
export function boundGarbage(): void {
  setFlagsFromString("--heap-growing-percent=50");
}
