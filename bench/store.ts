import { closeSync, fdatasyncSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { join } from "node:path";
import { keyRules } from "#controller/cluster/registers.ts";
import { openDatabase, type ControllerDatabase } from "#controller/store/database.ts";
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
    upto: [["kcore-controller-a#0123abcd", number]],
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

async function writeRate(db: ControllerDatabase, writers: number, count: number): Promise<number> {
  let next = 0;
  const began = performance.now();
  const write = async (): Promise<void> => {
    while (next < count) await db.append([change(next++)]);
  };
  await Promise.all(Array.from({ length: writers }, write));
  return count / ((performance.now() - began) / 1000);
}

const open = (): Promise<ControllerDatabase> =>
  openDatabase({
    folder: join(folder, "db"),
    rules: keyRules,
    onBroken: (error) => {
      throw error;
    },
  });

try {
  const ratios: Record<number, number[]> = { 1: [], 64: [] };
  const db = await open();
  for (let round = 0; round < 5; round++) {
    for (const writers of [1, 64]) {
      const disk = diskRate(1500);
      const rate = await writeRate(db, writers, writers * 1500);
      ratios[writers]?.push(rate / disk);
      console.log(
        `${writers} writers: ${rate.toFixed(0)}/s, disk ${disk.toFixed(0)} fdatasync/s, ratio ${(rate / disk).toFixed(2)}`,
      );
    }
  }
  for (const [writers, all] of Object.entries(ratios))
    console.log(`median ratio, ${writers} writers: ${all.toSorted((a, b) => a - b)[2]?.toFixed(2)}`);

  for (let number = 0; number < registers; number++) db.data.apply(change(number + 1));
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  const began = performance.now();
  await db.write();
  delay.disable();
  console.log(
    `snapshot of ${registers} registers: ${(performance.now() - began).toFixed(0)} ms, longest stall ${(delay.max / 1e6).toFixed(1)} ms`,
  );
  await db.close();

  const started = performance.now();
  const again = await open();
  console.log(
    `opened again: ${[...again.data.map.all()].length} registers in ${(performance.now() - started).toFixed(0)} ms`,
  );
  await again.close();
} finally {
  rmSync(folder, { recursive: true });
}
