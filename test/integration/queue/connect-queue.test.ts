import { expect } from "chai";
import { execFileSync } from "node:child_process";
import { connectQueue } from "#queue/connect-queue.ts";
import type { QueueSettings } from "#queue/queue-settings.ts";
import { freePort } from "#support/ports.ts";
import { type PrivateRedis, startRedis } from "#support/redis.ts";
import { rejectionOf } from "#support/rejection.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

describe("a connection to the queue's Redis", () => {
  const at = folderOfEachTest("connect");
  const servers: PrivateRedis[] = [];
  afterEach(async () => {
    for (const server of servers.splice(0)) await server.stop();
  });
  const start = async (...given: Parameters<typeof startRedis>): Promise<number> => {
    const server = await startRedis(...given);
    servers.push(server);
    return server.port;
  };
  const open = (url: string, more: Partial<QueueSettings> = {}, password = "right") =>
    connectQueue({ url, members: [], ...more }, { project: at(), readSecret: () => Promise.resolve(password) });
  const problemOf = async (...given: Parameters<typeof open>) => {
    const { problems } = await rejectionOf(open(...given));
    return [problems.length, problems[0]?.code, `${problems[0]?.message} ${problems[0]?.hint}`] as const;
  };
  const secret = { password: { env: "P" } };

  it("is refused in one line that names the fault", async () => {
    const nobody = await freePort("127.0.0.1");
    expect(await problemOf(`redis://127.0.0.1:${nobody}`)).to.satisfy(isRefusal("QUEUE_UNREACHABLE", "ECONNREFUSED"));
    const users = ["kcore on >right ~kcore:* +@all", "poor on >right ~kcore:* -@all +@connection", "default off"];
    const closed = await start({ users });
    expect(await problemOf(`redis://kcore@127.0.0.1:${closed}`, secret, "wrong")).to.satisfy(
      isRefusal("QUEUE_UNREACHABLE", "queue.password"),
    );
    expect(await problemOf(`redis://poor@127.0.0.1:${closed}`, secret)).to.satisfy(
      isRefusal("QUEUE_UNREACHABLE", "NOPERM"),
    );
    const forgetful = await start({ words: ["--maxmemory-policy", "allkeys-lru"] });
    expect(await problemOf(`redis://127.0.0.1:${forgetful}`)).to.satisfy(isRefusal("QUEUE_UNFIT", "allkeys-lru"));
    const volatile = await start({ words: ["--appendonly", "no"] });
    expect(await problemOf(`redis://127.0.0.1:${volatile}`)).to.satisfy(isRefusal("QUEUE_UNFIT", "appendonly"));
  });

  it("proves the server's certificate by the CA in kcore.yaml", async () => {
    for (const name of ["own", "other"])
      execFileSync(
        "openssl",
        `req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=${name} -addext subjectAltName=IP:127.0.0.1 -keyout ${at(`${name}.key`)} -out ${at(`${name}.crt`)}`.split(
          " ",
        ),
        { stdio: "ignore" },
      );
    const tls = ["--tls-cert-file", at("own.crt"), "--tls-key-file", at("own.key"), "--tls-auth-clients", "no"];
    const port = await freePort("127.0.0.1");
    await start({ words: ["--tls-port", String(port), "--tls-ca-cert-file", at("own.crt"), ...tls] });
    const { redis, close } = await open(`rediss://127.0.0.1:${port}`, { ca: "own.crt" });
    expect(await redis.ping()).to.equal("PONG");
    close();
    expect(await problemOf(`rediss://127.0.0.1:${port}`, { ca: "other.crt" })).to.satisfy(
      isRefusal("QUEUE_UNREACHABLE", "queue.ca"),
    );
  });
});

/** A test of a problem's number, code, and words. */
function isRefusal(code: string, words: string) {
  return ([count, found, text]: readonly [number, string | undefined, string]): boolean =>
    count === 1 && found === code && text.includes(words) && !text.includes("\n");
}
