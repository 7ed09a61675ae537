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

/** The end of a login whose first attempt fails with this error, and whether kcore asked for a password, which no operator gives. */
async function ends(error: Error, askPassword: boolean): Promise<string> {
  const transport = { connect: () => Promise.reject(error) } as unknown as Transport;
  const key = { type: "ssh-ed25519", key: "AAAA", fingerprint: "" } as never;
  const thrown: unknown = await logIn(machine, transport, key, { askPassword }).catch((cause: unknown) => cause);
  const [problem] = thrown instanceof KcoreError ? thrown.problems : [];
  return `${problem?.code ?? ""}${problem?.hint?.includes("--ask-password") === true ? ", advised" : ""}`;
}

describe("a login to a machine that may know only a password", () => {
  it("asks for the password of the machine that refused our keys, or advises to be asked", async () => {
    expect(await ends(refused("n1"), true)).to.equal("QUESTION_UNANSWERED");
    expect(await ends(refused("n1"), false)).to.equal("AUTH_FAILED, advised");
  });

  it("asks for none where it would help nothing: a jump host, no key of ours, two factors", async () => {
    const others = [
      refused("jump"),
      hostFailure({ code: "AUTH_FAILED", message: "there is no key to log in to n1 as root with" }),
      hostFailure({ code: "AUTH_FAILED", message: "n1 wants more than a key from root, which kcore cannot give" }),
    ];
    for (const error of others)
      for (const asks of [true, false]) expect(await ends(error, asks), error.message).to.equal("AUTH_FAILED");
  });
});
