import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { sh } from "#engine/step/sh.ts";
import { createTransport } from "#engine/transport/connect.ts";
import { draftOf, sessionOn } from "#support/sessions.ts";

/** Wants the password “secret”, and writes down what it was started with; as real sudo (test/lab/sudo) with a terse one's eyes. */
const sudo = (log: string): string => `#!/bin/sh
printf '%s\\n' "$*" >>${log}
[ "$1" != -n ] || exit 1
for try in 1 2; do
  printf '%s' "$3" >&2
  IFS= read -r password || exit 1
  [ "$password" != secret ] || { shift 3 && exec "$@"; }
  echo "Sorry, try again." >&2
done
`;

describe("becoming root by sudo", () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "kcore-sudo-"));
    chmodSync(folder, 0o700);
    writeFileSync(join(folder, "sudo"), sudo(join(folder, "log")), { mode: 0o755 });
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  async function runWith(password: string | readonly string[], nonce: string) {
    const typed = [password].flat();
    const transport = createTransport({ home: folder });
    const run = sessionOn(join(folder, "state"), {
      nonce,
      endpoint: { name: "n1", transport: "ssh", address: "n1", port: 22, user: "ops", hostKeys: [], jump: [] },
      sudoPassword: () => Promise.resolve(typed.shift()),
      connect: async (endpoint, options) => {
        const host = await transport.connect({ ...endpoint, transport: "local" }, options);
        const found = `PATH=${folder}:$PATH; export PATH;`;
        return { ...host, exec: (command, given) => host.exec(`${found} ${command}`, given) };
      },
    });
    const drafts = [draftOf("is", { want: { done: "1" }, probe: sh`fact done 1` })];
    const { outcome, problem } = await run.session.perform([{ stage: "s", drafts }]);
    await run.session.finish(outcome);
    return { outcome, code: problem?.code };
  }

  it("S-8: tells the run's nonce in no argument, the password goes by stdin", async () => {
    const nonce = "0123456789abcdef".repeat(2);
    expect(await runWith("secret", nonce)).to.deep.equal({ outcome: "done", code: undefined });
    const log = readFileSync(join(folder, "log"), "utf8");
    expect(log).to.contain("-S -p").and.not.contain(nonce).and.not.contain("secret");
  });

  it("V4: takes a sudo password at the third try, and gives up after it", async () => {
    const done = { outcome: "done", code: undefined };
    expect(await runWith(["tpyo", "tpyo", "secret"], "e".repeat(32))).to.deep.equal(done);
    const { code } = await runWith(["a", "b", "c", "secret"], "d".repeat(32));
    expect(code).to.equal("SUDO_PASSWORD_WRONG");
  });

  it("S-8: knows a wrong password after one try, where there is no other", async () => {
    expect(await runWith("guess", "f".repeat(32))).to.deep.equal({ outcome: "failed", code: "SUDO_PASSWORD_WRONG" });
  });
});
