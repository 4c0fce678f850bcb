CREATE VIEW by_key AS SELECT k, window.start AS start, count(*) AS n, sum(x) AS total FROM stream
    GROUP BY k, window(ts, '45 seconds');
CREATE VIEW few AS SELECT window.start AS start, count(*) AS n, median(v) AS half FROM stream
    GROUP BY window(ts, '20 seconds') HAVING count(*) < 13;
