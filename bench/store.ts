import { closeSync, fdatasyncSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { join } from "node:path";
import { openStore } from "#controller/store/store.ts";
import type { DurableStore } from "#controller/store/store.ts";
import type { JournalRecord } from "#controller/replica/replica-ports.ts";

/**
 * The store's figures beside the disk's own: `node bench/store.ts [FOLDER]`. Goals: one writer
 * at least 0.35 of the disk's fdatasync rate; 100,000 registers read in 1.5 s; no stall above 50 ms while they are written.
 */
const folder = mkdtempSync(join(process.argv[2] ?? "/var/tmp", "kcore-bench-"));
const registers = 100_000;
const value = JSON.stringify({
  hostname: "node-0123456789",
  address: "192.0.2.77",
  cpu: 16,
  memory: 68_719_476_736,
  dc: "DC1",
  version: "0.1.0",
});

function change(number: number): JournalRecord {
  return {
    t: "apply",
    page: {
      origins: ["kcore-controller-a#0123abcd"],
      contexts: [[]],
      registers: [
        [
          `node/00000000-0000-4000-8000-${String(number).padStart(12, "0")}/reg`,
          value,
          1_750_000_000_000 + number,
          0,
          0,
          number,
          0,
        ],
      ],
    },
    upto: { "kcore-controller-a#0123abcd": number } as never,
  };
}

function diskRate(count: number): number {
  const file = openSync(join(folder, "rate"), "w", 0o600);
  const bytes = Buffer.alloc(256, "a");
  const began = performance.now();
  for (let done = 0; done < count; done++) {
    writeSync(file, bytes);
    fdatasyncSync(file);
  }
  const rate = count / ((performance.now() - began) / 1000);
  closeSync(file);
  return rate;
}

async function writeRate(store: DurableStore, writers: number, count: number): Promise<number> {
  let next = 0;
  const began = performance.now();
  const write = async (): Promise<void> => {
    while (next < count) await store.append([change(next++)]);
  };
  await Promise.all(Array.from({ length: writers }, write));
  return count / ((performance.now() - began) / 1000);
}

const open = (): Promise<DurableStore> =>
  openStore({
    folder: join(folder, "db"),
    onBroken: (error) => {
      throw error;
    },
  });

try {
  const ratios: Record<number, number[]> = { 1: [], 64: [] };
  const store = await open();
  for (let round = 0; round < 5; round++) {
    for (const writers of [1, 64]) {
      const disk = diskRate(1500);
      const rate = await writeRate(store, writers, writers * 1500);
      ratios[writers]?.push(rate / disk);
      console.log(
        `${writers} writers: ${rate.toFixed(0)}/s, disk ${disk.toFixed(0)} fdatasync/s, ratio ${(rate / disk).toFixed(2)}`,
      );
    }
  }
  for (const [writers, all] of Object.entries(ratios))
    console.log(`median ratio, ${writers} writers: ${all.toSorted((a, b) => a - b)[2]?.toFixed(2)}`);

  const state = Array.from({ length: registers / 1000 }, (_, page): JournalRecord => {
    const all = Array.from(
      { length: 1000 },
      (_unused, place) => change(page * 1000 + place) as JournalRecord & { t: "apply" },
    );
    return {
      ...(all[0] as JournalRecord & { t: "apply" }),
      page: {
        origins: ["a"],
        contexts: [[]],
        registers: all.map(
          ({
            page: {
              registers: [register],
            },
          }) => register as never,
        ),
      },
    };
  });
  store.attach(() => Promise.resolve(state));
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  const began = performance.now();
  await store.snapshot();
  delay.disable();
  console.log(
    `snapshot of ${registers} registers: ${(performance.now() - began).toFixed(0)} ms, longest stall ${(delay.max / 1e6).toFixed(1)} ms`,
  );
  await store.close();

  const started = performance.now();
  const again = await open();
  let found = 0;
  for (const record of again.recovered) found += record.t === "apply" ? record.page.registers.length : 0;
  console.log(`opened again: ${found} registers in ${(performance.now() - started).toFixed(0)} ms`);
  await again.close();
} finally {
  rmSync(folder, { recursive: true });
}
