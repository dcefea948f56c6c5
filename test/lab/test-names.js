// Replaces the DNS for a program that is started with NODE_OPTIONS=--import: every name below .test is this machine.
import dns from "node:dns";

const { lookup } = dns;
dns.lookup = (name, options, callback) => {
  const address = name.endsWith(".test") ? "127.0.0.1" : name;
  return lookup(address, options, callback);
};
