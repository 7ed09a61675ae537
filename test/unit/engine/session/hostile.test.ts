import { expect } from "chai";
import fc, { anyText } from "#support/properties.ts";
import { stepKey } from "#engine/program/compile-step.ts";
import { sh } from "#engine/step/sh.ts";
import { flood, line, mayHold, type FloodLoad } from "#support/flooding-node.ts";
import { tellLongForm, tries } from "#support/hostile.ts";
import { draftOf } from "#support/sessions.ts";

const lines = (word: string, count: number): string =>
  Array.from({ length: count }, (_, at) => `${word} ${at}`).join("\n");
const drafts = [
  draftOf(
    "config",
    { want: { a: "1" }, probe: sh`:`, apply: sh`:`, shown: lines("wanted", 6_000) },
    { register: "config" },
  ),
  draftOf("other", { want: { a: "1" }, probe: sh`:`, apply: sh`:` }),
];
const [key, other] = drafts.map(({ id }) => stepKey(id)) as [string, string];
const begin = ["hello 1 0 boot machine 0", "runner new 0", "told", "lock mine", "segment 1"].map(line);
const long = "x".repeat(250_000);

function* repeat(count: number, ...made: readonly ((at: number) => Uint8Array)[]): Generator<Uint8Array> {
  for (let at = 0; at < count; at++) for (const make of made) yield make(at);
}

function* together(chunks: Iterable<Uint8Array>, size = 65_536): Generator<Uint8Array> {
  const all = Buffer.concat([...chunks]);
  for (let at = 0; at < all.length; at += size) yield all.subarray(at, at + size);
}

const shown = line(`show ${key} ${lines("found", 6_000).replaceAll("\n", "\\n")}`);
const start = line(`start ${key} `);
const bytes = (count: number): Generator<Uint8Array> => repeat(count, () => Buffer.from("x"));

/** Outputs of a hostile node, each with its consequence: the node `fails` at its limit, or the session `ends` as usual. */
const floods: Readonly<Record<string, readonly ["fails" | "ends", () => Iterable<Uint8Array>]>> = {
  "repeated ends of a step": ["ends", () => [start, shown, ...repeat(50, () => line(`end ${key} changed 0`))]],
  "repeated failures of a step": [
    "fails",
    () =>
      repeat(
        2_000,
        () => start,
        () => shown,
        () => line(`end ${key} failed 1`),
      ),
  ],
  "repeated starts of a step": ["fails", () => together(repeat(1_000, () => start))],
  "16 MiB of output byte by byte": [
    "ends",
    () => [start, line(`out ${key}.o.0 0 ${16 << 20} 0`), Buffer.alloc((16 << 20) - 300, "x"), ...bytes(300)],
  ],
  "a long line byte by byte": ["fails", () => [Buffer.alloc(200_000, "x"), ...bytes(65_536)]],
  "facts of 250 KB": ["fails", () => repeat(100, (at) => line(`fact - fact${at}=${long}`))],
  "a fact nested 5,000 deep": ["fails", () => [line(`fact - ${"a.".repeat(5_000)}a=1`), line("facts-end")]],
  "more facts than any node has": ["fails", () => together(repeat(5_000, (at) => line(`fact - fact${at}=1`)))],
  "values of 250 KB": ["fails", () => [start, ...repeat(100, (at) => line(`have ${key} value${at}=${long}`))]],
  "more values than are held at a time": [
    "fails",
    () => [start, ...repeat(40, (at) => line(`have ${key} value${at}=${long}`))],
  ],
  "small values in long lines": [
    "ends",
    () => [
      start,
      ...repeat(100, (at) => Buffer.concat([Buffer.from(long), line(`now ${key} value${at}=${"y".repeat(20)}`)])),
    ],
  ],
  "notes of 250 KB": ["fails", () => [start, ...repeat(80, () => line(`note ${key} ${long}`))]],
  "short notes": ["fails", () => [start, ...together(repeat(20_000, () => line(`note ${key} ${"x".repeat(1_000)}`)))]],
  milestones: ["fails", () => [start, ...repeat(80, () => line(`milestone ${key} ${long}`))]],
  "refusals of 250 KB": [
    "ends",
    () => [start, line(`refused ${key} NO_SUCH_CODE ${long}`), line(`end ${key} failed 1`)],
  ],
  "unknown pieces of output": [
    "ends",
    () => [
      start,
      ...together(repeat(10_000, (at) => Buffer.concat([line(`out ${key}.o.${at} 0 1 0`), Buffer.from("x\n")]))),
    ],
  ],
  "requests for contents": ["fails", () => together(repeat(20_000, () => line(`need ${"f".repeat(32)}`)))],
  "repeated ends of a runner": [
    "fails",
    () =>
      repeat(
        20_000,
        () => line("gone"),
        () => line("lock mine"),
      ),
  ],
  "repeated hello frames": ["fails", () => together(repeat(20_000, (at) => line(`hello 1 0 boot${at} machine ${at}`)))],
  "repeated lock frames": ["fails", () => together(repeat(20_000, () => line("lock taken-over 1:2:boot:run:who")))],
  "empty lines": ["ends", () => repeat(6, () => Buffer.alloc(65_536, "\n"))],
  "lines of blanks": ["ends", () => repeat(20, () => line(`quick ${" ".repeat(250_000)}`))],
  "half a million keys": ["ends", () => repeat(4, () => line(`quick ${"k ".repeat(125_000)}`))],
  "unfinished terminal sequences": [
    "fails",
    () => [start, ...repeat(80, () => line(`note ${key} ${"\u009d".repeat(120_000)}`))],
  ],
};

function check(name: string, { blocked, held, recorded, sent, result }: FloodLoad): void {
  tellLongForm(
    `${name}: ${blocked.toFixed(0)} ms, ${held.toFixed(1)} MiB, record ${(recorded / 2 ** 20).toFixed(1)} MiB`,
  );
  expect(blocked, "milliseconds of a blocked loop").to.be.lessThan(50);
  expect(held, "MiB held").to.be.lessThan(mayHold);
  expect(recorded, "bytes in the record").to.be.lessThan(40 * 2 ** 20);
  expect(sent, "bytes sent").to.be.lessThan(16 * 2 ** 20);
  if (result.problem?.code === "NODE_LIMIT_EXCEEDED") expect(result.problem.message).to.contain("n1");
}

describe("a hostile node's frames", function () {
  this.timeout(1_200_000);

  for (const [name, [outcome, output]] of Object.entries(floods))
    it(`are limited (S-4): ${name}`, async () => {
      const flooded = await flood(drafts, () => [...begin, ...together([]), ...output()]);
      check(name, flooded);
      expect(flooded.result.problem?.code === "NODE_LIMIT_EXCEEDED").to.equal(outcome === "fails");
      if (outcome === "fails") expect(flooded.result.outcome).to.equal("failed");
    });

  it("end a step once for each start", async () => {
    const ends = repeat(50, () => line(`end ${key} changed 0`));
    const { events } = await flood(drafts, () => [...begin, start, shown, ...ends]);
    expect(events.get("step.finished")).to.equal(1);
  });

  it("block the event loop for less than 50 ms and take less than 32 MiB, whatever they are (S-4)", async () => {
    const types =
      "start end have now apply rc note retry refused show stdout milestone quick fact facts-end out need lock bye";
    const more = "segment segment-end gone fatal runner hello told sudo x";
    const type = fc.constantFrom(...`${types} ${more}`.split(" "));
    const word = fc.oneof(
      {
        weight: 6,
        arbitrary: fc.constantFrom(
          key,
          other,
          `${key}.o.0`,
          `${other}.e.1`,
          ..."1 0 changed failed ok mine".split(" "),
        ),
      },
      fc.constantFrom("a=1", "a.b.c=x", `${"d.".repeat(300)}=1`, "__proto__.x=1", "-1", "1e9", "65536", "NaN", ""),
      anyText({ maxLength: 30 }).map((text) => text.replaceAll("\n", "")),
    );
    const pad = fc.tuple(
      fc.constantFrom("x", "\\n", " ", "\u009d", "\u202e", "\u001b["),
      fc.constantFrom(0, 0, 0, 10, 1_000, 100_000),
    );
    const frame = fc
      .tuple(type, fc.array(word, { maxLength: 5 }), pad)
      .map(([name, words, [text, count]]) => line([name, ...words, text.repeat(count)].join(" ")));
    const noise = fc.uint8Array({ maxLength: 200 }).map((made) => Buffer.from(made));
    const burst = fc.tuple(fc.oneof({ weight: 9, arbitrary: frame }, noise), fc.constantFrom(1, 1, 1, 3, 40));
    const sizes = fc.constantFrom(1_000, 4_096, 65_536, 1_000_000);
    await fc.assert(
      fc.asyncProperty(fc.array(burst, { maxLength: 60, size: "max" }), sizes, async (bursts, size) => {
        const chunks = bursts.flatMap(([made, count]) => Array.from({ length: count }, () => made));
        check("random", await flood(drafts, () => together([...begin, ...chunks], size)));
      }),
      { numRuns: tries(8, 2_000) },
    );
  });
});
