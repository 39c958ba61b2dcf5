import java.util.Map;
import org.apache.storm.Config;
import org.apache.storm.LocalCluster;
import org.apache.storm.topology.TopologyBuilder;
import org.apache.storm.tuple.Fields;
import org.apache.stormcrawler.bolt.*;
import org.apache.stormcrawler.indexing.DummyIndexer;
import org.apache.stormcrawler.urlfrontier.*;
import org.apache.stormcrawler.util.ConfUtils;
import org.apache.stormcrawler.util.URLStreamGrouping;
import org.yaml.snakeyaml.Yaml;

/**
 * The topology of the archetype's crawler.flux, but for Tika, until standard input ends: Topology CONFIG... With several
 * addresses it has a spout and a status bolt for each, and groups status by host.
 */
public class Topology {
    @SuppressWarnings("unchecked")
    public static void main(String[] files) throws Exception {
        Config conf = new Config();
        Map<String, Object> defaults = new Yaml().load(Topology.class.getResourceAsStream("/crawler-default.yaml"));
        conf.putAll((Map<String, Object>) defaults.get("config"));
        for (String file : files) {
            ConfUtils.loadConf(file, conf);
        }
        TopologyBuilder b = new TopologyBuilder();
        int nodes = Math.max(1, ConfUtils.loadListFromConf("urlfrontier.address", conf).size());
        b.setSpout("spout", new Spout(), nodes);
        b.setBolt("partitioner", new URLPartitionerBolt()).shuffleGrouping("spout");
        b.setBolt("fetcher", new FetcherBolt()).fieldsGrouping("partitioner", new Fields("key"));
        b.setBolt("sitemap", new SiteMapParserBolt()).localOrShuffleGrouping("fetcher");
        b.setBolt("feed", new FeedParserBolt()).localOrShuffleGrouping("sitemap");
        b.setBolt("parse", new JSoupParserBolt()).localOrShuffleGrouping("feed");
        b.setBolt("index", new DummyIndexer()).localOrShuffleGrouping("parse");
        var status = b.setBolt("status", new StatusUpdaterBolt(), nodes);
        for (String bolt : new String[] {"fetcher", "sitemap", "feed", "parse", "index"}) {
            if (nodes == 1) {
                status.fieldsGrouping(bolt, "status", new Fields("url"));
            } else {
                status.customGrouping(bolt, "status", new URLStreamGrouping("byHost"));
            }
        }
        try (LocalCluster cluster = new LocalCluster()) {
            cluster.submitTopology("crawler", conf, b.createTopology());
            while (System.in.read() >= 0) {}
        }
        System.exit(0);
    }
}
