import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdir, writeFile } from "node:fs/promises";
import { request } from "node:http";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { assetFolder } from "#lab/assets.ts";
import { freePort } from "#support/ports.ts";
import { makeTempDir, type TempDir } from "#support/temp-dir.ts";

describe("the lab's package server", () => {
  let folder: TempDir;
  let server: ChildProcess;
  let port: number;

  /** Sends the path unchanged, unlike fetch, which would remove “..”. */
  function get(path: string): Promise<{ status: number | undefined; body: string }> {
    return new Promise((resolve, reject) => {
      request({ host: "127.0.0.1", port, path }, (response) => {
        let body = "";
        response.on("data", (chunk: Buffer) => (body += chunk.toString()));
        response.on("end", () => resolve({ status: response.statusCode, body }));
      })
        .on("error", reject)
        .end();
    });
  }

  before(async () => {
    folder = await makeTempDir("packages");
    await mkdir(join(folder.path, "served"));
    await writeFile(join(folder.path, "served", "Packages"), "Package: hello\n");
    await writeFile(join(folder.path, "secret"), "secret\n");
    port = await freePort();
    const program = join(assetFolder(), "serve-packages.mjs");
    server = spawn(process.execPath, [program, "127.0.0.1", String(port), join(folder.path, "served")], {
      stdio: "ignore",
    });
    for (let tries = 0; tries < 100; tries++)
      if (
        await get("/").then(
          () => true,
          () => sleep(30, false),
        )
      )
        break;
  });

  after(async () => {
    server.kill();
    await once(server, "exit");
    await folder.remove();
  });

  it("serves a file of its folder", async () => {
    expect(await get("/./Packages")).to.deep.equal({ status: 200, body: "Package: hello\n" });
  });

  for (const path of ["/../secret", "/..%2fsecret", "/%2e%2e/secret", "//../secret", "/", "/..", "/%", "/nothing"]) {
    it(`sends no content for ${path}`, async () => {
      expect((await get(path).catch(() => ({ body: "" }))).body).to.equal("");
    });
  }
});
