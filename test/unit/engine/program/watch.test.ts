import { spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { shippedText } from "#engine/program/texts.ts";
import { shells } from "#support/steps.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

/** The function k_watch, which the runner gets on demand. */
const watch = /^k_watch\(\) \{\n[\s\S]*?^\}/m.exec(shippedText("runner-on-demand"))?.[0] ?? "";

describe("k_watch, which ends a step that neither reads nor writes", () => {
  /** k_watch's limit and verdict about this shell itself, which runs `between` between two looks. */
  function overAfter(shell: string, between: string, more = ""): string {
    const [program = "", ...words] = shell.split(" ");
    const text = `${watch}
k_cpid=$$ k_for=step
look() { k_secs=$1 k_limit=900/5; k_watch; }
look 5
${between}
look 10
${more}
echo "$k_limit $k_over"`;
    const { stdout, stderr } = spawnSync(program, [...words, "-c", text], { encoding: "utf8" });
    expect(stderr).to.equal("");
    return stdout.trim();
  }

  for (const shell of [...shells, "mksh"])
    describe(shell, () => {
      // A look itself reads, so this shell watches another process, which does no I/O.
      const idle = "sleep 5 >/dev/null 2>&1 & k_cpid=$! k_moved= && sleep 0.02; look 5";

      it("ends a step without I/O, with the seconds and the kilobytes", () =>
        expect(overAfter(shell, idle, "kill $k_cpid")).to.match(/^10 stalled:5:\d+$/));

      it("counts the I/O of a child process, also of one that has ended", () =>
        expect(overAfter(shell, "head -c 100000 /dev/zero >/dev/null")).to.equal("900"));

      it("counts the I/O of grandchildren", () => {
        // A busy machine may take a while.
        const io = "cat /proc/$(tr -d ' ' </proc/$k_cpid/task/$k_cpid/children)/io";
        const written = `a=$(${io}); while [ "$(${io})" = "$a" ]; do sleep 0.01; done`;
        const parent = `yes >/dev/null & trap "kill $!" TERM; wait`;
        const child = `sh -c '${parent}' 2>/dev/null & k_cpid=$! k_moved= && sleep 0.03; look 5; ${written}`;
        expect(overAfter(shell, child, "kill $k_cpid; wait $k_cpid")).to.equal("900");
      });

      it("looks every fifth second, and ignores a process that has ended", () => {
        expect(overAfter(shell, `${idle}; look 9; k_secs=8`, "kill $k_cpid")).to.match(/^10 stalled:5:/);
        expect(overAfter(shell, "k_cpid=999999999; look 5")).to.equal("900");
      });

      describe("for a process that waits for a disk", () => {
        const at = folderOfEachTest("watch");

        /** k_watch's limit and verdict about a process in this state; the kernel's count of written pages at each look. */
        function overOf(state: string, ...written: readonly number[]): string {
          const tasks = at("proc/7/task/7");
          mkdirSync(tasks, { recursive: true });
          writeFileSync(at("proc/7/io"), "rchar: 5000\nwchar: 5000\n");
          writeFileSync(at("proc/7/stat"), `7 (S) D sync) ${state} 1 7 7 0\n`);
          writeFileSync(join(tasks, "children"), "");
          const looks = written.map(
            (pages, index) =>
              `printf 'nr_dirty 7\\nnr_written ${pages}\\nnr_after 1\\n' >${at()}/proc/vmstat; look ${index * 5 + 5}`,
          );
          const faked = watch.replaceAll("/proc/", `${at()}/proc/`).replace("/$$/task/$$/", "/7/task/7/");
          const [program = "", ...words] = shell.split(" ");
          const text = `${faked}
k_cpid=7 k_for=step k_over= k_watched= k_moved=
look() { k_secs=$1 k_limit=900/10; k_watch; }
${looks.join("\n")}
echo "$k_limit $k_over"`;
          const { stdout, stderr } = spawnSync(program, [...words, "-c", text], { encoding: "utf8" });
          expect(stderr).to.equal("");
          return stdout.trim();
        }

        it("does not end it while the kernel writes pages", () => expect(overOf("D", 10, 11, 12, 13)).to.equal("900"));

        it("ends it when the kernel writes no page, or when it does not wait for the disk", () => {
          expect(overOf("D", 10, 10, 10)).to.equal("15 stalled:10:10");
          expect(overOf("S", 10, 11, 12)).to.equal("15 stalled:10:10");
        });
      });

      it("keeps its verdict for a step, and begins anew with the next step", () => {
        expect(overAfter(shell, idle, "k_cpid=$$; look 15; kill $!")).to.match(/^10 /);
        expect(overAfter(shell, idle, "k_for=other k_over=; look 15; kill $k_cpid")).to.match(/^900$/);
      });
    });
});
