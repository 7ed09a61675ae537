import { expect } from "chai";
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { shippedText } from "#engine/program/texts.ts";
import { shellsOf } from "#support/shells.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

/** Seconds since 1970, at leap days, at the ends of months, years and centuries, and every 116 days until 2033. */
const moments = `2000-02-28T23:59:59Z 2000-02-29T00:00:00Z 2000-03-01T00:00:00Z 2024-02-29T12:34:56Z
2024-12-31T23:59:59Z 2025-01-01T00:00:00Z 2026-11-30T13:05:09Z 2027-02-28T23:59:59Z`
  .split(/\s/)
  .map((text) => Date.parse(text) / 1000);
for (let at = 0; at < 2_000_000_000; at += 10_009_009) moments.push(at);

describe("k_take_time of the runner", () => {
  const [takeTime = ""] = /^k_take_time\(\) \{\n[^]*?\n\}/m.exec(shippedText("runner")) ?? [];
  const at = folderOfEachTest("time");

  for (const shell of shellsOf(import.meta.filename, ["dash", "bash", "busybox sh", "mksh"]))
    it(`adds the seconds since the follower's clock reading, and formats the time as date(1) does, in ${shell}`, () => {
      // The follower looked at its clock 100 s after the boot, and 40 s ago.
      const calls = moments.map(
        (seconds) => `echo '${seconds - 40} 100' >"$K_RUN/launched"; k_up=140; k_take_time; echo "$k_now"`,
      );
      const program = at("program");
      writeFileSync(program, [`K_RUN=${at()}`, takeTime, ...calls].join("\n"));
      const [name = "", ...words] = shell.split(" ");
      const printed = execFileSync(name, [...words, program], { encoding: "utf8" })
        .trimEnd()
        .split("\n");
      expect(printed).to.deep.equal(moments.map((at) => new Date(at * 1000).toISOString().replace(".000", "")));
    });
});
