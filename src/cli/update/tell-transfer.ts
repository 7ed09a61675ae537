import type { TransferOptions } from "#api/bundle-transfer.ts";
import type { Bundle } from "#rollout/spec.ts";

/** Tells on stderr how far a bundle is on its way: one line that grows at a terminal, else one when it is there. */
export function tellTransfer({ version, size }: Pick<Bundle, "version" | "size">, endpoint: string): TransferOptions {
  const { stderr } = process;
  const what = `kcore ${version} to ${endpoint}`;
  let isBegun = false;
  return {
    onProgress(held) {
      const isWhole = held >= size;
      // All of it is there already: nothing was brought.
      if (isWhole && !isBegun) return;
      isBegun = true;
      const line = `${what}: ${megabytes(held)} of ${megabytes(size)} MB`;
      if (stderr.isTTY) stderr.write(`\r${line}${isWhole ? "\n" : ""}`);
      else if (isWhole) stderr.write(`${line}\n`);
    },
  };
}

function megabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(1);
}
