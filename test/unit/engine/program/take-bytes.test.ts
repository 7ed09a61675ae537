import { expect } from "chai";
import { spawnSync } from "node:child_process";
import { shippedText } from "#engine/program/texts.ts";
import { shellsOf } from "#support/shells.ts";

const [take] = /^k_take\(\) \{\n.*?^\}\n/ms.exec(shippedText("follower")) ?? [];

for (const shell of shellsOf(import.meta.filename, ["dash", "bash", "busybox sh", "mksh"]))
  describe(`the follower's k_take, in ${shell}`, () => {
    const dd = (bytes: number): string => {
      const text = `k_whole() { :; }\nk_lost() { :; }\ndd() { echo "$*"; }\n${take}k_take /dev/stdout ${bytes}`;
      return spawnSync("/bin/sh", ["-c", `${shell} -c "$0" | cat`, text], { encoding: "utf8" }).stdout.trim();
    };

    it("reads a whole part in blocks of a pipe's size", () =>
      expect(dd(1 << 20)).to.equal("bs=65536 count=16 iflag=fullblock"));

    it("reads any other length as one block", () =>
      expect(dd((1 << 20) - 1)).to.equal("bs=1048575 count=1 iflag=fullblock"));
  });
