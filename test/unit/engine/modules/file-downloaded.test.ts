import { readFileSync, statSync, writeFileSync } from "node:fs";
import { expect } from "chai";
import { fileDownloaded } from "#engine/modules/file-downloaded.ts";
import { blobOf, type Blob } from "#engine/step/blob.ts";
import type { RemoteContent } from "#engine/step/remote.ts";
import { secret } from "#engine/step/secret.ts";
import { contextOf, runStepOn, stepOf } from "#support/steps.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

const content = blobOf("the content");

/** Beyond the table of the module: contents that the bastion offers, and the node's requests for them. */
describe("file.downloaded with via: bastion", () => {
  const at = folderOfEachTest("download");

  it("offers the remote content, without a name for a sensitive step, and none where the node fetches it", () => {
    const remotes: RemoteContent[] = [];
    const remote = (one: RemoteContent): Blob => (remotes.push(one), content);
    const fetched = { url: "https://a/b", sha256: content.sha256, headers: { A: secret("b") }, caFile: "/ca" };
    const given = { path: "/opt/tool", ...fetched };
    stepOf(fileDownloaded, { ...given, via: "bastion" }, contextOf({ remote }));
    stepOf(fileDownloaded, { ...given, via: "bastion" }, contextOf({ remote, sensitive: true }));
    stepOf(fileDownloaded, given, contextOf({ remote }));
    expect(remotes).to.deep.equal([
      { ...fetched, label: "tool" },
      { ...fetched, label: "contents" },
    ]);
  });

  it("asks for a different content, but not where only the mode differs", async () => {
    const path = at("file");
    const args = { path, url: "https://a/b", sha256: content.sha256, via: "bastion", mode: "0644" };
    const step = { ...stepOf(fileDownloaded, args, contextOf({ remote: () => content })), offers: [] };
    const run = () => runStepOn("/bin/dash", step, { stateDir: at() });
    writeFileSync(path, "the content", { mode: 0o600 });
    expect([(await run()).outcome, statSync(path).mode & 0o777]).to.deep.equal(["changed", 0o644]);
    writeFileSync(path, "old");
    // Status 20: the runner asks for the content.
    expect([(await run()).status, readFileSync(path, "utf8")]).to.deep.equal([20, "old"]);
  });
});
