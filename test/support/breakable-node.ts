import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Endpoint } from "#engine/transport/host.ts";
import { startDelayLine, type DelayLine } from "./delay-line.ts";
import type { SshServer } from "./ssh-server.ts";
import { startSshd } from "./sshd.ts";

/** A private sshd behind a line that can be slow or cut, for all tests of a `describe`. Each test gets an empty folder. */
export class BreakableNode {
  sshd!: SshServer;
  line!: DelayLine;
  folder = "";

  constructor() {
    before(async () => {
      this.sshd = await startSshd();
      this.line = await startDelayLine({ target: { port: this.sshd.port } });
    });
    after(async () => {
      await this.line?.close();
      await this.sshd?.stop();
    });
    beforeEach(() => {
      this.folder = mkdtempSync(join(tmpdir(), "kcore-breakable-"));
      chmodSync(this.folder, 0o755);
    });
    afterEach(() => {
      this.line.setRate(undefined);
      rmSync(this.folder, { recursive: true, force: true });
    });
  }

  /** Through the line, unless another port is given. */
  endpoint(port = this.line.port): Endpoint {
    return { ...this.sshd.endpoint(), name: "n1", port };
  }
}
