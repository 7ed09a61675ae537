import { hostname, userInfo } from "node:os";
import { expect } from "chai";
import { whoAmI } from "#cli/process/who.ts";

describe("the user who runs kcore", () => {
  it("is SUDO_USER for root only, and only with a valid user name", () => {
    const here = (name: string): string => `${name}@${hostname()}`;
    expect(whoAmI({ SUDO_USER: "ann" }, 0)).to.equal(here("ann"));
    for (const [env, uid] of [
      [{ SUDO_USER: "ann" }, 1000],
      [{ SUDO_USER: "a b" }, 0],
      [{}, 0],
    ] as const)
      expect(whoAmI(env, uid)).to.equal(here(userInfo().username));
  });
});
