import { createServer, type Server } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { debianImage } from "#system/debian-image.ts";
import { problemsOf } from "#support/steps.ts";
import { makeTempDir, type TempDir } from "#support/temp-dir.ts";

const fixtures = join(import.meta.dirname, "../fixtures/mirror");

describe("a Debian image from a forged mirror", () => {
  let server: Server;
  let folder: TempDir;
  let files: Readonly<Record<string, string>> = {};
  before(async () => {
    folder = await makeTempDir("forged-mirror");
    server = createServer(({ url = "" }, response) => {
      const name = files[url.replace("/dists/bookworm/", "")];
      response.writeHead(name === undefined ? 404 : 200);
      response.end(name === undefined ? "" : readFileSync(join(fixtures, name)));
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
  });
  after(async () => {
    server.close();
    await folder.remove();
  });

  const refusal = async (): Promise<string> => {
    const mirror = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    const { signal } = new AbortController();
    const wanted = { suite: "bookworm", mirror, kernel: "linux-image-amd64", packages: [] };
    const [problem] = await problemsOf(() => debianImage(wanted, { cache: folder.path, note: () => {}, signal }));
    return `${problem?.code} ${problem?.detail}`;
  };

  it("is not made when the mirror signs nothing", async () => {
    files = { Release: "Release" };
    expect(await refusal()).to.match(/^OS_IMAGE_FAILED [^]*Release/);
  });

  it("is not made when the mirror signs with another key", async () => {
    files = { InRelease: "InRelease" };
    expect(await refusal()).to.match(/^OS_IMAGE_FAILED [^]*Release signed by unknown key/);
  });
});
