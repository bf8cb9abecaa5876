# needs: python3
for view in segments memory; do
    cudamem svg --$view "$DATA/train.pickle.gz@peak" -o out.svg &&
        python3 -c 'import sys, xml.etree.ElementTree as E; print(E.parse(sys.argv[1]).getroot().tag)' out.svg
done
