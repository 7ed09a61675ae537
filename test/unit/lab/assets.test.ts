import { accessSync, constants } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { assetFolder } from "#lab/assets.ts";

describe("the lab's own files", () => {
  for (const name of ["make-image", "make-busybox", "in-cgroup", "supervise"]) {
    it(`has an executable ${name}`, () =>
      expect(() => accessSync(join(assetFolder(), name), constants.X_OK)).to.not.throw());
  }
});
