import fc from "fast-check";
import { sliceBase } from "./slice.ts";

// Random cases differ with each commit. A failure names its seed, which `KCORE_SLICE=SEED` repeats.
fc.configureGlobal({ seed: sliceBase() });

export { default } from "fast-check";

/** Any text. fc.string of all code points would first make a table of all 1.1 million, which takes a second. */
export function anyText(lengths: fc.ArrayConstraints = {}): fc.Arbitrary<string> {
  const point = fc.nat(0x10f7ff).map((number) => (number < 0xd800 ? number : number + 0x800));
  return fc.array(point, lengths).map((points) => String.fromCodePoint(...points));
}
