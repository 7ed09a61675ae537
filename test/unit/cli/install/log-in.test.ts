import { expect } from "chai";
import { logIn } from "#cli/install/log-in.ts";
import type { Machine } from "#cli/roster/find-machine.ts";
import type { Transport } from "#engine/transport/connect.ts";
import { hostFailure, LoginRefused } from "#engine/transport/host-problems.ts";
import { KcoreError } from "#errors/problem.ts";
import { nodeEntry, rosterOf } from "#support/runs.ts";

const entry = nodeEntry("n1", { user: "root" });
const machine: Machine = {
  project: "/nowhere",
  host: "n1",
  roster: rosterOf(entry),
  entry,
  isInRoster: true,
  note: "",
};
const refused = (host: string): KcoreError => new LoginRefused(host, { message: `${host} does not let root log in` });

/** The problem of a login that fails with this error, and whether its hint names --ask-password. A question for a password fails, too. */
async function problemOf(error: Error, askPassword: boolean): Promise<string> {
  const transport = { connect: () => Promise.reject(error) } as unknown as Transport;
  const key = { type: "ssh-ed25519", key: "AAAA", fingerprint: "" } as never;
  const thrown: unknown = await logIn(machine, transport, key, { askPassword }).catch((cause: unknown) => cause);
  const [problem] = thrown instanceof KcoreError ? thrown.problems : [];
  return `${problem?.code ?? ""}${problem?.hint?.includes("--ask-password") === true ? ", advised" : ""}`;
}

describe("a login to a machine without kcore's key", () => {
  it("asks for the password with --ask-password, and hints at the flag without it", async () => {
    expect(await problemOf(refused("n1"), true)).to.equal("QUESTION_UNANSWERED");
    expect(await problemOf(refused("n1"), false)).to.equal("AUTH_FAILED, advised");
  });

  it("asks for no password if a jump host refused, kcore has no key, or the machine wants two factors", async () => {
    const others = [
      refused("jump"),
      hostFailure({ code: "AUTH_FAILED", message: "there is no key to log in to n1 as root with" }),
      hostFailure({ code: "AUTH_FAILED", message: "n1 wants more than a key from root, which kcore cannot give" }),
    ];
    for (const error of others)
      for (const asks of [true, false]) expect(await problemOf(error, asks), error.message).to.equal("AUTH_FAILED");
  });
});
