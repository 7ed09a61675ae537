import { hostname, userInfo } from "node:os";
import { expect } from "chai";
import { whoAmI } from "#cli/process/who.ts";

describe("who runs kcore", () => {
  it("is behind sudo the user who called it, and nobody that a user names himself (S12)", () => {
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
