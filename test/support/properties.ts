import fc from "fast-check";
import { sliceBase } from "./slice.ts";

// Other cases with each commit; who fails is told with the seed, which `KCORE_SLICE=SEED` repeats.
fc.configureGlobal({ seed: sliceBase() });

export { default } from "fast-check";
