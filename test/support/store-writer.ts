import { writeSync } from "node:fs";
import type { JournalRecord } from "#controller/replica/replica-ports.ts";
import { openStore } from "#controller/store/store.ts";

/**
 * A process to be killed: opens the store in the folder that it is given, tells `found N` when it holds exactly the numbers 1 to
 * N, and then appends the next ones by several writers for ever, telling each number as soon as it is acknowledged.
 */
const [folder = "", writers = "8"] = process.argv.slice(2);
const tell = (line: string): void => {
  writeSync(1, `${line}\n`);
};
const recordOf = (number: number): JournalRecord => ({ t: "meta", storeId: String(number) });

const store = await openStore({
  folder,
  limits: { segmentBytes: 64 * 1024, snapshotRecords: 400 },
  onBroken: (error) => {
    throw error;
  },
});
const numbers = new Set<number>();
for (const record of store.recovered) numbers.add(Number((record as { storeId: string }).storeId));
let next = 1;
while (numbers.has(next)) next++;
if (numbers.size !== next - 1) throw new Error(`${numbers.size} numbers, but ${next} is missing`);
tell(`found ${numbers.size}`);
store.attach(() => Promise.resolve([...numbers].map(recordOf)));

async function write(): Promise<never> {
  for (;;) {
    const number = next++;
    await store.append([recordOf(number)]);
    numbers.add(number);
    tell(String(number));
  }
}
await Promise.all(Array.from({ length: Number(writers) }, write));
